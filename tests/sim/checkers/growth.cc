#include <algorithm>
#include <optional>
#include <string>

#include "tests/sim/checkers/checkers.h"

namespace attune::sim {
namespace {

// A gang leaves to go on with more workers only where it has fewer than it would like to have, is
// old enough and loses nothing; one at a time; not while a trial of its sweep waits for room; and
// it gets a gang again.
class Growth final : public Checker {
 public:
  using Checker::Checker;

  void OnEvent(const Event& event) override {
    if (const auto* yielding = std::get_if<TrialYielding>(&event.fact))
      Asked(*yielding, event.time);
    if (const auto* decided = std::get_if<TrialDecided>(&event.fact)) Decided(*decided);
    if (const auto* stopping = std::get_if<SweepStopping>(&event.fact);
        stopping != nullptr && asked_ && asked_->trial.sweep == stopping->sweep)
      asked_.reset();
    const auto trial = TrialOf(event.fact);
    const bool over = std::holds_alternative<AttemptEnded>(event.fact) ||
                      std::holds_alternative<TrialEnded>(event.fact);
    if (over && asked_ && asked_->trial == trial) asked_.reset();
  }

 private:
  void Decided(const TrialDecided& fact) {
    const VerdictKind verdict = fact.verdict.kind;
    if (verdict == VerdictKind::kResize && asked_ != fact.attempt)
      Find(ToString(fact.attempt) + " leaves to grow, and was not asked to");
    if (verdict != VerdictKind::kResize && verdict != VerdictKind::kContinue &&
        asked_ == fact.attempt)
      asked_.reset();
  }

  void Asked(const TrialYielding& fact, Time now) {
    const SweepBook& sweep = *books_.Find(fact.trial.sweep);
    const TrialBook& trial = sweep.trials.at(fact.trial.number);
    if (!trial.live) return;
    if (fact.verdict.kind != VerdictKind::kResize) {
      if (asked_ == trial.live->id) asked_.reset();
      return;
    }
    const AttemptBook& attempt = *trial.live;
    const std::string who = ToString(attempt.id) + " is to grow, and ";
    if (sweep.spec.gang.min_workers == 0) Find(who + "is of a fixed size");
    if (std::ssize(attempt.ranks) >= sweep.spec.gang.workers) Find(who + "has all its workers");
    if (!attempt.saved) Find(who + "has saved nothing");
    if (attempt.left || attempt.fallen) Find(who + "leaves already");
    const double age = 1e-6 * static_cast<double>(now.us - attempt.assigned.us);
    if (age < sweep.spec.gang.grow_after.value) Find(who + "is too young");
    if (sweep.state != SweepState::kRunning || sweep.stopping)
      Find(who + "its sweep does not go on");
    if (asked_) Find(who + ToString(*asked_) + " does");
    asked_ = attempt.id;
    if (Waits(sweep)) Find(who + "a trial of its sweep waits");
  }

  // For room: any executor would do for it.
  bool Waits(const SweepBook& sweep) const {
    const int most = sweep.spec.max_concurrent_trials;
    if (most > 0 && sweep.Live() >= most) return false;
    if (std::ranges::any_of(books_.executors, [&](const auto& entry) {
          const ExecutorBook& executor = entry.second;
          return executor.lost || !executor.folder.empty() || !reality_.IsSeen(entry.first);
        }))
      return false;
    return std::ranges::any_of(sweep.trials, [](const auto& entry) {
      return entry.second.state == TrialState::kPending && !entry.second.live;
    });
  }

  std::optional<AttemptId> asked_;  // and still there
};

}  // namespace

std::unique_ptr<Checker> CheckGrowth(const Evidence& evidence) {
  return std::make_unique<Growth>(evidence);
}

}  // namespace attune::sim
