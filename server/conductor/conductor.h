#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/base/result.h"
#include "core/brain/brain.h"
#include "core/log/command.h"
#include "server/conductor/clock.h"
#include "server/store/event_store.h"

namespace attune::server {

// Told of what has become durable, on the conductor's thread: be quick, and do not call back in.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void OnDurable(std::span<const Event> events, const Brain& brain) = 0;
};

// The one thread that owns all state. Every method may be called from any thread; callbacks run on
// the conductor's thread, after the commit, in the order of submission.
class Conductor {
 public:
  // The events that the commands led to; with an error nothing has happened.
  using Done = std::function<void(const Result<std::span<const Event>>&)>;
  using Look = std::function<void(const Brain&)>;

  // Algorithms and store outlive the conductor. The clock does not go back; where the log is ahead
  // of it, the conductor goes on from there at the clock's pace.
  Conductor(const Algorithms& algorithms, EventStore& store, Clock clock);

  ~Conductor();  // stops

  // REQUIRES: called before Start. Without it no executor is reachable; it is asked on the
  // conductor's thread.
  void SetReachable(Reachable reachable) { reachable_ = std::move(reachable); }
  void Subscribe(Listener* listener) { listeners_.push_back(listener); }

  // Rebuilds the brain from the newest snapshot that can be loaded and the log after it, then
  // begins to decide.
  Status Start();

  // Commands of one submission are decided together and share one answer: the first refusal refuses
  // the rest. `done` may be empty.
  void Submit(std::vector<Command> commands, Done done);

  // Submits and waits. `kUnavailable` once the conductor stops.
  Result<std::vector<Event>> Execute(Command command);

  // Runs `look` between two batches, on durable state only; Query waits for it.
  void Post(Look look);
  void Query(const Look& look);

  // What is reachable has changed: look again for what can start.
  void Nudge();

  // Why nothing can be decided or written now.
  Status Ready() const;

  // Blocks until an event after `seq` is durable, `timeout_ms` has passed or the conductor stops;
  // returns the last durable one.
  EventSeq WaitForEvents(EventSeq seq, int timeout_ms) const;

  // Refuses what comes and ends every wait. When it returns, what was queued is decided and
  // written, and no callback runs any more. Not from a callback.
  void Stop();

 private:
  struct Item {
    std::vector<Command> commands;
    Done done;
    Look look;
  };

  void Enqueue(Item item);
  void Run();
  void Handle(std::deque<Item> items);
  std::optional<Error> Decide(const std::vector<Command>& commands, std::vector<Event>& events);
  void Drop(const Error& why);
  void TryAgain();
  Status Restore();
  void SaveSnapshot();
  Time Now() const { return Time{clock_().us + ahead_us_}; }
  void Publish(std::span<const Event> events);

  const Algorithms& algorithms_;
  EventStore& store_;
  Clock clock_;
  Reachable reachable_ = [](const std::string&) { return false; };
  std::vector<Listener*> listeners_;
  int64_t ahead_us_ = 0;  // what the log was ahead of the clock at the start
  // Conductor's thread only, once started.
  std::unique_ptr<Brain> brain_;
  EventSeq snapshot_seq_{0};  // of the newest snapshot that was loaded or tried

  mutable std::mutex mutex_;
  mutable std::condition_variable wake_;     // something is queued, or stop
  mutable std::condition_variable durable_;  // durable_seq_ grew, or stop
  std::deque<Item> queue_;
  EventSeq durable_seq_{0};
  std::optional<Error> stalled_;  // why the store cannot be written
  bool stopping_ = false;
  std::thread thread_;
};

// A snapshot is written after so many events and at the end, so that a start replays no more.
inline constexpr uint64_t kSnapshotEvents = 200'000;

}  // namespace attune::server
