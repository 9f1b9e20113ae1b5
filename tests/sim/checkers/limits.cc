#include <algorithm>
#include <set>

#include "tests/sim/checkers/checkers.h"

namespace attune::sim {
namespace {

// Checks max_trials, max_restarts, max_failed_trials, max_concurrent_trials, the budgets and the
// target.
class Limits final : public Checker {
 public:
  using Checker::Checker;

  void OnEvent(const Event& event) override {
    if (const auto* created = std::get_if<TrialCreated>(&event.fact)) CheckCreated(*created);
    if (const auto* assigned = std::get_if<AttemptAssigned>(&event.fact))
      CheckAssigned(*assigned, event.time);
    if (const auto* ended = std::get_if<TrialEnded>(&event.fact)) {
      if (ended->state == TrialState::kFailed) failed_.insert(ended->trial.sweep);
    }
    // A sweep that is reopened continues in spite of its failures. A log that is read back after a
    // restore has both events in one batch.
    if (const auto* reopened = std::get_if<SweepReopened>(&event.fact))
      failed_.erase(reopened->sweep);
  }

  void OnBatch() override {
    for (const SweepId id : failed_) {
      const SweepBook& sweep = *books_.Find(id);
      const auto failed = std::ranges::count_if(sweep.trials, [](const auto& entry) {
        return entry.second.state == TrialState::kFailed;
      });
      if (failed > sweep.spec.failure.max_failed_trials && !sweep.stopping &&
          !HasEnded(sweep.state))
        Report("sweep " + ToString(id) + " continues with " + std::to_string(failed) +
               " failed trials");
    }
    failed_.clear();
  }

 private:
  void CheckCreated(const TrialCreated& fact) {
    const SweepBook* sweep = books_.Find(fact.trial.sweep);
    if (sweep == nullptr || fact.origin == kEnqueued) return;
    const int max_trials = sweep->spec.stop.max_trials;
    if (max_trials > 0 && sweep->CreatedCount() >= max_trials)
      Report("trial " + ToString(fact.trial) + " exceeds max_trials");
  }

  void CheckAssigned(const AttemptAssigned& fact, Time now) {
    const SweepBook* sweep = books_.Find(fact.attempt.trial.sweep);
    const TrialBook* trial = books_.Find(fact.attempt.trial);
    if (sweep == nullptr || trial == nullptr) return;
    const std::string who = ToString(fact.attempt);
    if (trial->failures > sweep->spec.failure.max_restarts) Report(who + " exceeds max_restarts");
    const int max_live = sweep->spec.max_concurrent_trials;
    if (max_live > 0 && sweep->LiveCount() >= max_live)
      Report(who + " exceeds max_concurrent_trials");
    // A request over the ask/tell API may come just before the server notices the limit.
    if (sweep->stopping || sweep->spec.External()) return;

    const StopPolicy& stop = sweep->spec.stop;
    const double ran = 1e-6 * static_cast<double>(sweep->ran_us + now.us - sweep->running_since.us);
    if (stop.max_time.value > 0 && ran >= stop.max_time.value) Report(who + " exceeds max_time");
    if (stop.max_gpu_hours > 0 && GpuSeconds(*sweep, now) > 3600 * stop.max_gpu_hours + 1e-3)
      Report(who + " exceeds max_gpu_hours");
    if (sweep->TargetReached()) Report(who + " starts after the target was reached");
  }

  static double GpuSeconds(const SweepBook& sweep, Time now) {
    double seconds = sweep.gpu_seconds;
    for (const auto& [number, trial] : sweep.trials) {
      if (!trial.live) continue;
      for (const RankSlot& slot : trial.live->ranks)
        seconds += 1e-8 * GpuPercent(slot) * static_cast<double>(now.us - trial.live->assigned.us);
    }
    return seconds;
  }

  std::set<SweepId> failed_;  // sweeps with a trial that failed in this batch
};

}  // namespace

std::unique_ptr<Checker> CheckLimits(const Evidence& evidence) {
  return std::make_unique<Limits>(evidence);
}

}  // namespace attune::sim
