#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/result.h"
#include "cli/client/http_client.h"
#include "cli/client/sse.h"
#include "cli/json.h"

namespace attune::cli {

// An event of the events stream.
struct ServerEvent {
  uint64_t seq = 0;
  std::string kind;  // trial_changed, …
  Json data;
};

// A subscription to one sweep's events, on a separate thread. Reconnects automatically and
// continues after the last event, so that each event is delivered once and in order.
class EventStream {
 public:
  // All functions are called on the stream's thread.
  struct Handler {
    // Connected. `gap`: events before this moment may be missing, so read the state over REST now.
    // No later event is missed.
    std::function<void(bool gap)> on_open;
    std::function<void(ServerEvent)> on_event;
    std::function<void(const Error&)> on_lost;     // the connection broke; retries
    std::function<void(const Error&)> on_refused;  // the server refused; does not retry
  };

  // Starts after the event `after`; without it, with the next event.
  EventStream(const Endpoint& endpoint, std::string sweep, std::optional<uint64_t> after,
              Handler handler);
  ~EventStream();  // no handler runs afterwards

 private:
  void Loop();
  bool Connect();  // false: do not retry
  void Deliver(const SseParser::Message& message);

  HttpClient client_;
  std::string sweep_;
  std::optional<uint64_t> last_seq_;
  Handler handler_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  bool finished_ = false;
  int retry_ms_ = 2000;
  std::thread thread_;
};

}  // namespace attune::cli
