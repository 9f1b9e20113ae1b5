#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "executor/agent/machine.h"
#include "simulator/worker.h"
#include "tests/sim/service/surroundings.h"

namespace attune::sim {

// Between the words of executor/gang and those of core.
AttemptId IdOf(const gang::AttemptId& attempt);
TrialId TrialOf(const gang::AttemptId& attempt);

// The gangs of one host: what executor/gang does, without processes. They train by a curve, fail,
// hang, and take their time to start and to go.
class TrainingGangs final : public agent::Gangs {
 public:
  using After = std::function<void(int64_t us, simulate::Timeline::Action action)>;

  // `after` runs something later, unless this process of the executor is gone by then; `facts` is
  // told what happens, never from within a call of these gangs.
  TrainingGangs(Surroundings& surroundings, std::string host, After after, gang::FactSink facts)
      : around_(surroundings),
        host_(std::move(host)),
        after_(std::move(after)),
        facts_(std::move(facts)) {}
  ~TrainingGangs() override;  // they are gone, and nobody is told

  void Run(gang::GangSpec spec) override;
  void Cancel(const gang::AttemptId& attempt, gang::CancelReason reason) override;
  void Tell(const gang::AttemptId& attempt, const gang::Verdict& verdict) override;
  void Yield(const gang::AttemptId& attempt) override;
  void Meet(const gang::AttemptId& attempt, const channel::Rendezvous& rank_zero) override;
  void Finish(const gang::AttemptId&) override {}            // none is a laggard here
  void SetDeadline(gang::BootClock::time_point) override {}  // nothing stops but whole hosts

  // A backup was restored. Those that its log does not know train for nobody until they are told.
  void MarkLost(const std::function<bool(const gang::AttemptId&)>& is_known) {
    for (auto& [attempt, gang] : gangs_) gang.lost = gang.lost || !is_known(attempt);
  }

  // The host stood still for longer than its lease and moves again: the gangs are about to be torn
  // down, but some take a step before.
  void MoveOnceMore();

 private:
  enum class Phase { kStarting, kRunning, kEnding };
  struct Gang {
    gang::GangSpec spec;
    Config config;
    simulate::Orders orders;
    simulate::Worker worker;
    std::optional<Ending> ending;          // by itself
    std::optional<gang::Verdict> verdict;  // not delivered yet
    Phase phase = Phase::kStarting;
    bool met = false;  // a part without rank 0: it knows where that listens
    bool stepped = false;
    int64_t logged = 0;
    double seconds = 0;
    bool lost = false;  // the log knows nothing of it any more
  };

  // Runs if the gang is there by then and still in the phase that it is in now.
  void ForGang(const Gang& gang, int64_t us, std::function<void(Gang&)> act);
  void Launch(Gang& gang);
  void Fetched(Gang& gang);
  void Launched(Gang& gang);
  void Train(Gang& gang);
  void Follow(Gang& gang);
  static Step Ahead(const Gang& gang);
  static bool IsOver(const Gang& gang);
  static bool SaysTheLast(const Gang& gang);
  void Say(Gang& gang);
  void Deliver(Gang& gang);
  void FindDiskFull(Gang& gang);
  void FillDisk(Gang& gang);
  void Fail(Gang& gang, gang::FailureKind kind, int rank, std::string message);
  void End(Gang& gang, gang::Ended ended);
  void Emit(const Gang& gang, decltype(gang::Fact::what) what);

  Surroundings& around_;
  const std::string host_;
  const After after_;
  const gang::FactSink facts_;
  std::map<gang::AttemptId, Gang> gangs_;
};

}  // namespace attune::sim
