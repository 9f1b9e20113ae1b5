#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "server/conductor/conductor_machine.h"
#include "server/conductor/log_keeper.h"
#include "server/conductor/proposal_runner.h"
#include "server/conductor/queue.h"
#include "server/rpc/sessions.h"
#include "simulator/timeline.h"
#include "tests/sim/service/crashing_store.h"
#include "tests/sim/service/decider.h"
#include "tests/sim/service/network.h"
#include "tests/sim/variant.h"

namespace attune::sim {

// The duration of a lease, which starts when the newest answered heartbeat was sent.
inline constexpr int64_t kLeaseUs = 20'000'000;
inline constexpr int64_t kPatienceUs =
    kLeaseUs * 3 / 2;  // the server waits this long before an executor is lost

// One process of the server: the real conductor and the real sessions of executors, on one thread.
// A crash leaves Step as a ProcessCrash; then the object must be destroyed.
class ServerProcess final : private server::Submissions, private server::Listener {
 public:
  struct Context {
    simulate::Timeline& timeline;
    Network& network;
    CrashingStore& store;
    std::vector<Input>& inputs;
    Variant variant;
    uint64_t snapshot_events;
    std::optional<CrashPoint>& crash_point;
    std::function<void()> wake;  // called when something was submitted
    server::ProposalRunner::Run think;
    server::LogMarks* marks = nullptr;  // null: the log gets no identity
    std::function<LogIdentity()> new_identity;
    uint64_t run = 0;  // number of this process
  };
  explicit ServerProcess(Context context);
  ~ServerProcess() override;

  void Start(Time clock);  // reads the whole log
  void Step(Time clock);
  std::optional<Time> NextStep(Time clock) const { return machine_.NextStep(clock); }
  bool has_work() const { return !queue_.empty(); }

  void OnMessage(StreamId stream, v1::FromExecutor message);
  void OnClosed(StreamId stream);
  void CheckLeases() { sessions_.OnTime(context_.timeline.now()); }

  void Submit(Command command, server::Done done) override;
  // Submits the commands of one request. Calls `done` for each (server::Submission).
  void Submit(std::vector<Command> commands, server::Done done);
  const State* state() const { return started_ ? &machine_.brain().state() : nullptr; }

 private:
  // A connection. Some variants change its messages.
  class Link;

  void Record(std::vector<Command> facts, server::Stored stored) override;
  void RecordEnds(std::vector<Command> facts) override;
  void Post(server::StateReader look) override { Push({.look = std::move(look)}); }
  void CheckForStarts() override { Push({}); }
  void Push(server::Submission submission);

  void OnStarted(const Brain& brain) override;
  void OnState(EventSeq durable, const Status& writable) override;
  void OnDurable(std::span<const Event> events, const Brain& brain) override;

  Link& LinkOf(StreamId stream);
  bool RefusesMessage(Link& link, const v1::FromExecutor& message);
  bool IsKnown(const JoinExecutor& join) const;
  Reach Reaches(const std::string& executor) const;

  const Context context_;
  server::Queue queue_;
  std::map<StreamId, std::unique_ptr<Link>> links_;
  std::optional<server::LogKeeper> log_keeper_;
  server::Sessions sessions_;
  server::ProposalRunner proposal_runner_;
  server::ConductorMachine machine_;
  bool started_ = false;
  bool store_is_full_ = false;
};

}  // namespace attune::sim
