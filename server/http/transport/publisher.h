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

inline constexpr int kHeartbeatMs = 15'000;  // a comment at least this often
inline constexpr int kGatherMs = 20;         // what happens within is sent at once
inline constexpr int kRetryMs = 2'000;       // how soon a browser comes back

// The first text of every stream.
std::string StreamGreeting();

// The log as a publisher needs it: whoever knows what events mean implements it. Any thread.
class EventFeed {
 public:
  virtual ~EventFeed() = default;

  // Blocks until an event after `seq` is durable, `timeout_ms` has passed or the server stops;
  // returns the last durable one.
  virtual EventSeq WaitForEvents(EventSeq seq, int timeout_ms) = 0;

  // A part of the log as a text of server-sent events.
  struct Page {
    EventSeq seen;  // the last event that was read
    std::string text;
    bool more = false;  // the log goes on after `seen`
  };
  // The events after that one, of one sweep or of all. nullopt: the log cannot be read.
  virtual std::optional<Page> ReadAfter(EventSeq after, std::optional<SweepId> sweep) = 0;
};

// Writes the events streams: one thread for all of them. Streams at the same place of the log share
// what is read and put into words. A stream gets its next text only when it has asked for it, so a
// reader that is slow falls behind in the log, and nothing piles up for it. Streams that are far
// behind take turns, after the others, so that they delay nobody.
class Publisher {
 public:
  using StreamId = uint64_t;
  // Called on the publisher's thread. nullopt: the stream is over, the log cannot be read.
  using Deliver = std::function<void(StreamId, std::optional<std::string> text)>;
  // Something is durable that was not when Watch was called; on a thread of the publisher's.
  using Happened = std::function<void()>;

  // The feed outlives the object.
  Publisher(EventFeed& feed, Deliver deliver, Happened happened);
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
    Clock::time_point read;  // when the log was last read for it
    Clock::time_point written;
  };
  using Place = std::pair<EventSeq, std::optional<SweepId>>;
  struct Turn {
    StreamId stream = 0;
    Place place;
    bool silent = false;  // for so long that something has to be written
    bool behind = false;  // far behind the end of the log
    Clock::time_point read;
  };

  void Await();
  void Publish();
  void Postpone(std::span<const Turn> turns);
  void Hand(const Turn& turn, const std::optional<EventFeed::Page>& page);

  EventFeed& feed_;
  const Deliver deliver_;
  const Happened happened_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<StreamId, Stream> streams_;
  EventSeq durable_;
  bool watched_ = false;
  bool stopping_ = false;
  std::thread awaiting_;    // in EventFeed::WaitForEvents
  std::thread publishing_;  // reads and delivers
};

}  // namespace attune::server
