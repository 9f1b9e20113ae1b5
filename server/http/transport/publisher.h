#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "server/http/transport/message.h"

namespace attune::server {

inline constexpr int kHeartbeatMs = 15'000;  // a stream gets at least a comment this often
inline constexpr int kGatherMs = 20;         // events within this time are sent together
inline constexpr int kRetryMs = 2'000;       // delay before a browser reconnects

// The first text of every stream.
std::string StreamGreeting();

// The interface with which the publisher reads the log. Any thread.
class EventFeed {
 public:
  virtual ~EventFeed() = default;

  // Blocks until an event after `seq` is durable, `timeout_ms` has passed or the server stops.
  // Returns the last durable event.
  virtual EventSeq WaitForEvents(EventSeq seq, int timeout_ms) = 0;

  // A part of the log as text of server-sent events.
  struct Page {
    EventSeq seen;  // the last event that was read
    std::string text;
    bool more = false;  // the log continues after `seen`
  };
  // The events after `after`, of one sweep or of all. Nullopt: the log cannot be read.
  virtual std::optional<Page> ReadAfter(EventSeq after, std::optional<SweepId> sweep) = 0;
};

// Produces the texts of all events streams on one thread. Streams at the same position share
// reading and rendering. A stream gets its next text only on request, so a slow reader falls behind
// in the log instead of using memory. Streams that are far behind are served after the others and
// in turns, so they delay nobody.
class Publisher {
 public:
  using StreamId = uint64_t;
  // Called on the publisher's thread with a stream's next text. Nullopt: the stream ends, because
  // the log cannot be read.
  using Deliver = std::function<void(StreamId, std::optional<std::string> text)>;
  // Called on a thread of the publisher when a new event is durable after WatchNextEvent.
  using OnEvent = std::function<void()>;

  // The feed must outlive the object.
  Publisher(EventFeed& feed, Deliver deliver, OnEvent on_event);
  ~Publisher();  // calls Stop

  // Adds a stream that starts after `after`, and requests its first text. Any thread.
  void AddStream(StreamId stream, EventSeq after, std::optional<SweepId> sweep);
  void RequestNext(StreamId stream);  // requests the next text of a stream
  void RemoveStream(StreamId stream);

  // Requests one call of `on_event` at the next event.
  void WatchNextEvent();

  void Stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct Stream {
    EventSeq after;
    std::optional<SweepId> sweep;
    bool fresh = true;  // nothing was read for it yet
    bool wants = true;
    Clock::time_point read;  // time of the last read for it
    Clock::time_point written;
  };
  using Position = std::pair<EventSeq, std::optional<SweepId>>;
  struct Turn {
    StreamId stream = 0;
    Position position;
    bool silent = false;  // silent for so long that a heartbeat is due
    bool behind = false;  // far behind the end of the log
    Clock::time_point read;
  };

  void WaitForFeed();
  void PublishPages();
  void Postpone(std::span<const Turn> turns);
  void DeliverPage(const Turn& turn, const std::optional<EventFeed::Page>& page);

  EventFeed& feed_;
  const Deliver deliver_;
  const OnEvent on_event_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable stopped_;  // stopping_ only, so that events do not interrupt a delay
  std::map<StreamId, Stream> streams_;
  EventSeq durable_;
  bool watched_ = false;
  bool stopping_ = false;
  std::thread awaiting_;    // waits in EventFeed::WaitForEvents
  std::thread publishing_;  // reads and delivers
};

}  // namespace attune::server
