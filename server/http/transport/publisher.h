#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "server/http/backend/backend.h"
#include "server/http/transport/message.h"
#include "server/store/reader.h"

namespace attune::server {

inline constexpr int kHeartbeatMs = 15'000;  // a comment at least this often
inline constexpr int kGatherMs = 20;         // what happens within is sent at once

// Writes the events streams: one thread for all of them. Streams at the same place of the log share
// what is read and put into words. A stream gets its next text only when it has asked for it, so a
// reader that is slow falls behind in the log, and nothing piles up for it.
class Publisher {
 public:
  using StreamId = uint64_t;
  // Called on the publisher's thread. nullopt: the stream is over, the log cannot be read.
  using Deliver = std::function<void(StreamId, std::optional<std::string> text)>;
  // Something is durable that was not when Watch was called; on a thread of the publisher's.
  using Happened = std::function<void()>;

  // Backend and reader outlive the object.
  Publisher(Backend& backend, Reader& reader, Deliver deliver, Happened happened);
  ~Publisher();  // stops

  // The stream wants what comes after that place. Any thread.
  void Follow(StreamId stream, EventSeq after, std::optional<SweepId> sweep);
  void Next(StreamId stream);  // and what comes then
  void Leave(StreamId stream);

  // Tell of the next thing that happens, once.
  void Watch();

  void Stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct Stream {
    EventSeq after;
    std::optional<SweepId> sweep;
    bool fresh = true;  // nothing was read for it yet
    bool wants = true;
    Clock::time_point written;
  };
  using Place = std::pair<EventSeq, std::optional<SweepId>>;
  struct Turn {
    StreamId stream = 0;
    Place place;
    bool silent = false;  // for so long that something has to be written
  };
  struct Text {
    EventSeq seen;
    std::string text;
    bool more = false;  // there is, in the log
  };

  void Await();
  void Publish();
  void Hand(const Turn& turn, const std::optional<Text>& text);
  std::optional<Text> Read(const Place& place);

  Backend& backend_;
  Reader& reader_;
  const Deliver deliver_;
  const Happened happened_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<StreamId, Stream> streams_;
  EventSeq durable_;
  bool watched_ = false;
  bool stopping_ = false;
  std::thread awaiting_;    // in Backend::WaitForEvents
  std::thread publishing_;  // reads and delivers
};

}  // namespace attune::server
