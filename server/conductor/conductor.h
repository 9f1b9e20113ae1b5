#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "core/brain/brain.h"
#include "core/log/command.h"
#include "server/conductor/clock.h"
#include "server/conductor/conductor_machine.h"
#include "server/conductor/queue.h"
#include "server/conductor/submissions.h"
#include "server/store/event_store.h"

namespace attune::server {

// Runs a ConductorMachine, which owns all state, on one thread with a queue and a clock. Any thread
// may call the methods. Callbacks and listeners run on the conductor's thread until Stop.
class Conductor final : public Submissions, private Listener {
 public:
  // Called if the machine says that the process must end. Must not return.
  using Fatal = std::function<void(const Error&)>;

  // Algorithms and store outlive the conductor. The clock must not go back. If the log's last event
  // is later than the clock, the log's time continues from there at the clock's pace. Without
  // `fatal`, the process logs an error and exits.
  Conductor(const Algorithms& algorithms, EventStore& store, Clock clock, Fatal fatal = {});

  ~Conductor() override;  // stops

  // Sets the function that tells whether an executor is reachable; by default none is. It is called
  // on the conductor's thread. REQUIRES: called before Start.
  void SetReachable(Reachable reachable) { reachable_ = std::move(reachable); }
  // Sets the clock whose time people see. If it departs from the conductor's clock, a ClockAdjusted
  // event records the offset and a warning is logged. REQUIRES: called before Start.
  void SetWallClock(Clock wall_clock) { wall_clock_ = std::move(wall_clock); }
  void Subscribe(Listener* listener) { machine_.Subscribe(listener); }

  // Reads the log, then starts the thread. Commands that are submitted earlier wait.
  Status Start();

  // Sets the progress that Started() reports. Call it before Start.
  void SetStartProgress(const std::string& step, uint64_t done, uint64_t total);

  void Submit(Command command, Done done) override;
  void Record(std::vector<Command> facts, Stored stored) override;
  void RecordEnds(std::vector<Command> facts) override;
  void Post(StateReader look) override;
  void CheckForStarts() override;

  // Submits commands, waits, and returns an answer for each. A command is decided only if the one
  // before it caused an event. `actor` names the client (see Brain::Execute).
  //
  // All commands are decided in one batch. For each command that was not refused, `after` gets its
  // events and the state after the batch. kUnavailable: too many commands wait already, or the
  // conductor stops.
  using Callback = std::function<void(std::span<const Event>, const Brain&)>;
  std::vector<Result<std::vector<Event>>> Execute(std::vector<Command> commands, std::string actor,
                                                  const Callback& after);
  Result<std::vector<Event>> Execute(Command command);

  // Calls `look` with the current state and waits for it. After the conductor has stopped, calls it
  // with the last state on the caller's thread.
  void Query(const StateReader& look);

  // Why the server cannot decide or write now: it still reads the log, or the store refuses writes.
  Status Ready() const;

  // Why there is no state yet: the log is being read. The message says how far.
  Status Started() const;

  // Blocks until an event after `seq` is durable, `timeout_ms` has passed or the conductor stops.
  // Returns the last durable event.
  EventSeq WaitForEvents(EventSeq seq, int timeout_ms) const;

  // Ends every wait and refuses new commands, on the thread that submits them. Drops new looks.
  // Before it returns, all queued commands are decided and written. Do not call it from a callback.
  void Stop();

 private:
  void OnStarted(const Brain& brain) override;
  void OnState(EventSeq durable, const Status& writable) override;
  void OnDurable(std::span<const Event> events, const Brain&) override;

  void Push(Submission submission);
  bool PushAndWait(Submission submission);  // returns whether `look` was called
  void Refuse(Submission submission);
  void Run();

  const Algorithms& algorithms_;
  const Clock clock_;
  Clock wall_clock_;
  const Fatal fatal_;
  Reachable reachable_ = [](const std::string&) { return false; };
  ConductorMachine machine_;  // used only by the conductor's thread once it runs

  mutable std::mutex mutex_;
  mutable std::condition_variable wake_;     // something is queued, or stop
  mutable std::condition_variable durable_;  // durable_seq_ grew, or stop
  Queue queue_;
  EventSeq durable_seq_{0};
  std::string starting_ = "the server is starting";
  bool started_ = false;
  Status writable_;
  bool stopping_ = false;
  bool running_ = false;  // whether the thread runs
  std::thread thread_;
};

}  // namespace attune::server
