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

// A fact as the events stream tells it.
struct ServerEvent {
  uint64_t seq = 0;
  std::string kind;  // trial_changed, …
  Json data;
};

// A subscription to one sweep's events on a thread of its own. It reconnects by itself and goes on
// after the last event it saw, so that each event is told once and in order.
class EventStream {
 public:
  // All are called on the stream's thread.
  struct Handler {
    // Connected. `gap`: at a place in the log that is not known, so that what happened before must
    // be read over REST, now that nothing after is missed.
    std::function<void(bool gap)> on_open;
    std::function<void(ServerEvent)> on_event;
    std::function<void(const Error&)> on_lost;     // the connection broke; it is tried again
    std::function<void(const Error&)> on_refused;  // the server says no; it is not tried again
  };

  // Begins after the event `after`; without it, with what comes next.
  EventStream(const Endpoint& endpoint, std::string sweep, std::optional<uint64_t> after,
              Handler handler);
  ~EventStream();  // no handler runs after it

 private:
  void Loop();
  bool Connect();  // false: never try again
  void Tell(const SseParser::Message& message);

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
