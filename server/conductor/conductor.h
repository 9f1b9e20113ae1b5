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

// The one thread that owns all state: a ConductorMachine with a queue, a clock and a thread. Every
// method may be called from any thread; callbacks and listeners run on the conductor's, until Stop.
class Conductor final : public Submissions, private Listener {
 public:
  // Called where the machine says that the process must end; does not return.
  using Fatal = std::function<void(const Error&)>;

  // Algorithms and store outlive the conductor. The clock does not go back; where the log is ahead
  // of it, the conductor goes on from there at the clock's pace. Without `fatal` the process ends
  // with a line on stderr.
  Conductor(const Algorithms& algorithms, EventStore& store, Clock clock, Fatal fatal = {});

  ~Conductor() override;  // stops

  // REQUIRES: called before Start. Without it no executor is reachable; it is asked on the
  // conductor's thread.
  void SetReachable(Reachable reachable) { reachable_ = std::move(reachable); }
  // REQUIRES: called before Start. People see this time: where it departs from the clock, an event
  // says so (ClockAdjusted), and a warning.
  void SetWallClock(Clock wall_clock) { wall_clock_ = std::move(wall_clock); }
  void Subscribe(Listener* listener) { machine_.Subscribe(listener); }

  // Reads the log, then begins to decide. What is submitted before waits.
  Status Start();

  // Before Start, for Started: how far something is that has to be done first.
  void TellStarting(const std::string& what, uint64_t done, uint64_t total);

  void Submit(Command command, Done done) override;
  void Record(std::vector<Command> facts, Stored stored) override;
  void RecordEnds(std::vector<Command> facts) override;
  void Post(Look look) override;
  void Nudge() override;

  // Submits and waits; an answer for each command, of which each is decided only where the one
  // before led to something. `actor` is who asks, as Brain::Execute has it. `kUnavailable` when too
  // much waits already, and once the conductor stops. `after` is shown, of each that was not
  // refused, what it led to and the state between their batch and the next; they are in one.
  using After = std::function<void(std::span<const Event>, const Brain&)>;
  std::vector<Result<std::vector<Event>>> Execute(std::vector<Command> commands, std::string actor,
                                                  const After& after);
  Result<std::vector<Event>> Execute(Command command);

  // Waits for the look. Once it has stopped, the look is at the last state there was, on the
  // caller's thread.
  void Query(const Look& look);

  // Why nothing can be decided or written now: the log is being read, or the store refuses.
  Status Ready() const;

  // Why there is no state to look at: the log is being read, and how far that is.
  Status Started() const;

  // Blocks until an event after `seq` is durable, `timeout_ms` has passed or the conductor stops;
  // returns the last durable one.
  EventSeq WaitForEvents(EventSeq seq, int timeout_ms) const;

  // Refuses what comes and ends every wait; a look that is posted then is dropped, and refusals are
  // told on the thread that submits. When it returns, what was queued is decided and written. Not
  // from a callback.
  void Stop();

 private:
  void OnStarted(const Brain& brain) override;
  void OnState(EventSeq durable, const Status& writable) override;
  void OnDurable(std::span<const Event> events, const Brain&) override;

  void Push(Submission submission);
  bool PushAndWait(Submission submission);  // whether its look was taken
  void Refuse(Submission submission);
  void Run();

  const Algorithms& algorithms_;
  const Clock clock_;
  Clock wall_clock_;
  const Fatal fatal_;
  Reachable reachable_ = [](const std::string&) { return false; };
  ConductorMachine machine_;  // the conductor's thread's, once that runs

  mutable std::mutex mutex_;
  mutable std::condition_variable wake_;     // something is queued, or stop
  mutable std::condition_variable durable_;  // durable_seq_ grew, or stop
  Queue queue_;
  EventSeq durable_seq_{0};
  std::string starting_ = "the server is starting";
  bool started_ = false;
  Status writable_;
  bool stopping_ = false;
  bool running_ = false;  // the thread
  std::thread thread_;
};

}  // namespace attune::server
