#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "executor/agent/machine.h"
#include "simulator/worker.h"
#include "tests/sim/service/environment.h"

namespace attune::sim {

inline constexpr int64_t kMaxFetchUs = 4 * simulate::kSecondUs;  // duration of a transfer

// Convert the ids of executor/gang into those of core.
AttemptId IdOf(const gang::AttemptId& attempt);
TrialId TrialOf(const gang::AttemptId& attempt);

// The gangs of one host: a double of executor/gang without processes. The gangs train along a
// curve, fail or hang. Their starts and ends take time.
class TrainingGangs final : public agent::Gangs {
 public:
  using Timer = std::function<void(int64_t us, simulate::Timeline::Action action)>;

  // `after` runs an action later if the executor's process still exists at that time. `facts`
  // receives facts, but never during a call of a method.
  TrainingGangs(Environment& environment, std::string host, Timer after, gang::FactSink facts)
      : environment_(environment),
        host_(std::move(host)),
        after_(std::move(after)),
        facts_(std::move(facts)) {}
  ~TrainingGangs() override;  // ends all gangs without reporting it

  void Run(gang::GangSpec spec) override;
  void Cancel(const gang::AttemptId& attempt, gang::CancelReason reason) override;
  void SetVerdict(const gang::AttemptId& attempt, const gang::Verdict& verdict) override;
  void Yield(const gang::AttemptId& attempt) override;
  void SetRendezvous(const gang::AttemptId& attempt, const channel::Rendezvous& rank_zero) override;
  void OnPeersFinished(const gang::AttemptId&) override {}   // no gang needs this order
  void SetDeadline(gang::BootClock::time_point) override {}  // only whole hosts freeze

  // Must be called after a restore from a backup. Gangs that the restored log does not know train
  // for nothing until the server cancels them.
  void MarkLost(const std::function<bool(const gang::AttemptId&)>& is_known) {
    for (auto& [attempt, gang] : gangs_) gang.lost = gang.lost || !is_known(attempt);
  }

  // Must be called if the host was frozen for longer than its lease. All gangs will be torn down,
  // but some train one more step before.
  void TrainOneMoreStep();

 private:
  enum class Phase { kStarting, kRunning, kEnding };
  struct Gang {
    gang::GangSpec spec;
    Config config;
    simulate::Orders orders;
    simulate::Worker worker;
    std::optional<Ending> ending;          // the early end of its program
    std::optional<gang::Verdict> verdict;  // not delivered yet
    Phase phase = Phase::kStarting;
    bool met = false;  // of a part without rank 0: it knows the address of rank 0
    bool stepped = false;
    int64_t logged = 0;
    double seconds = 0;
    bool lost = false;  // the restored log does not know it
  };

  // Runs `act` after `us`, if the gang still exists and is still in its current phase.
  void ForGang(const Gang& gang, int64_t us, std::function<void(Gang&)> act);
  void Launch(Gang& gang);
  void FinishFetch(Gang& gang);
  void FinishLaunch(Gang& gang);
  void Train(Gang& gang);
  void FollowRankZero(Gang& gang);
  static Step NextReportStep(const Gang& gang);
  static bool IsComplete(const Gang& gang);
  static bool HasSentLastReport(const Gang& gang);
  void ReportStep(Gang& gang);
  void DeliverVerdict(Gang& gang);
  void FailOnFullDisk(Gang& gang);
  void FillDisk(Gang& gang);
  void Fail(Gang& gang, gang::FailureKind kind, int rank, std::string message);
  void End(Gang& gang, gang::Ended ended);
  void Emit(const Gang& gang, decltype(gang::Fact::what) what);

  Environment& environment_;
  const std::string host_;
  const Timer after_;
  const gang::FactSink facts_;
  std::map<gang::AttemptId, Gang> gangs_;
};

}  // namespace attune::sim
