#include <algorithm>
#include <optional>
#include <string>

#include "tests/sim/checkers/checkers.h"

namespace attune::sim {
namespace {

// A gang grows only if
// - it has fewer workers than its sweep wants, is old enough and has saved a checkpoint;
// - no other gang grows, and no trial of its sweep waits for slots.
class Growth final : public Checker {
 public:
  using Checker::Checker;

  void OnEvent(const Event& event) override {
    if (const auto* yielding = std::get_if<TrialYielding>(&event.fact))
      CheckYield(*yielding, event.time);
    if (const auto* decided = std::get_if<TrialDecided>(&event.fact)) CheckDecision(*decided);
    if (const auto* stopping = std::get_if<SweepStopping>(&event.fact);
        stopping != nullptr && growing_ && growing_->trial.sweep == stopping->sweep)
      growing_.reset();
    const auto trial = TrialOf(event.fact);
    const bool ended = std::holds_alternative<AttemptEnded>(event.fact) ||
                       std::holds_alternative<TrialEnded>(event.fact);
    if (ended && growing_ && growing_->trial == trial) growing_.reset();
  }

 private:
  void CheckDecision(const TrialDecided& fact) {
    const VerdictKind verdict = fact.verdict.kind;
    if (verdict == VerdictKind::kResize && growing_ != fact.attempt)
      Report(ToString(fact.attempt) + " leaves to grow without an order");
    if (verdict != VerdictKind::kResize && verdict != VerdictKind::kContinue &&
        growing_ == fact.attempt)
      growing_.reset();
  }

  void CheckYield(const TrialYielding& fact, Time now) {
    const SweepBook& sweep = *books_.Find(fact.trial.sweep);
    const TrialBook& trial = sweep.trials.at(fact.trial.number);
    if (!trial.live) return;
    if (fact.verdict.kind != VerdictKind::kResize) {
      if (growing_ == trial.live->id) growing_.reset();
      return;
    }
    const AttemptBook& attempt = *trial.live;
    const std::string who = ToString(attempt.id) + " must grow but ";
    if (sweep.spec.gang.min_workers == 0) Report(who + "has a fixed size");
    if (std::ssize(attempt.ranks) >= sweep.spec.gang.workers) Report(who + "has all its workers");
    if (!attempt.saved) Report(who + "has saved no checkpoint");
    if (attempt.left || attempt.fallen) Report(who + "is already leaving");
    const double age = 1e-6 * static_cast<double>(now.us - attempt.assigned.us);
    if (age < sweep.spec.gang.grow_after.value) Report(who + "is too young");
    if (sweep.state != SweepState::kRunning || sweep.stopping)
      Report(who + "its sweep is not running");
    if (growing_) Report(who + ToString(*growing_) + " is growing");
    growing_ = attempt.id;
    if (HasWaitingTrial(sweep)) Report(who + "a trial of its sweep waits for slots");
  }

  // Whether a trial of the sweep waits for slots. Returns false if it may wait for another reason.
  bool HasWaitingTrial(const SweepBook& sweep) const {
    const int max_live = sweep.spec.max_concurrent_trials;
    if (max_live > 0 && sweep.LiveCount() >= max_live) return false;
    if (std::ranges::any_of(books_.executors, [&](const auto& entry) {
          const ExecutorBook& executor = entry.second;
          return executor.lost || !executor.folder.empty() || !reality_.IsReachable(entry.first);
        }))
      return false;
    return std::ranges::any_of(sweep.trials, [](const auto& entry) {
      return entry.second.state == TrialState::kPending && !entry.second.live;
    });
  }

  std::optional<AttemptId> growing_;  // the attempt that was told to grow
};

}  // namespace

std::unique_ptr<Checker> CheckGrowth(const Evidence& evidence) {
  return std::make_unique<Growth>(evidence);
}

}  // namespace attune::sim
