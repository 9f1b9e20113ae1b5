#include <algorithm>

#include "tests/sim/checkers/checkers.h"

namespace attune::sim {
namespace {

// A trial has one attempt at a time, epochs grow, and only the live attempt is believed: what is
// recorded of it, its own gang has said.
class Attempts final : public Checker {
 public:
  using Checker::Checker;

  void OnEvent(const Event& event) override {
    std::visit([this](const auto& fact) { On(fact); }, event.fact);
  }

 private:
  template <class Other>
  void On(const Other&) {}

  void On(const AttemptAssigned& fact) {
    const TrialBook* trial = books_.Find(fact.attempt.trial);
    if (fact.epoch <= books_.last_epoch) Find(ToString(fact.attempt) + " has an epoch of before");
    if (trial == nullptr) return Find(ToString(fact.attempt) + " is of a trial that is not there");
    if (trial->live)
      Find(ToString(fact.attempt) + " is assigned while " + ToString(trial->live->id) + " is live");
    if (fact.attempt.number != trial->attempts + 1)
      Find(ToString(fact.attempt) + " is not the next attempt");
  }
  void On(const AttemptStarted& fact) { Live(fact.attempt, "has started"); }
  void On(const AttemptFirstStep& fact) {
    if (Live(fact.attempt, "has trained a step") && !stepped_.insert(fact.attempt).second)
      Find(ToString(fact.attempt) + " trains its first step twice");
  }
  void On(const RendezvousOpened& fact) { Live(fact.attempt, "says where it meets"); }
  void On(const TrialReported& fact) {
    const AttemptBook* live = Live(fact.attempt, "reports");
    if (live != nullptr && !reality_.HasReported(live->epoch, fact.report.step))
      Find(ToString(fact.attempt) + " has not said what is recorded of step " +
           std::to_string(fact.report.step.value));
    const TrialBook* trial = books_.Find(fact.attempt.trial);
    if (trial != nullptr && fact.report.step <= trial->last_step)
      Find(ToString(fact.attempt) + " reports step " + std::to_string(fact.report.step.value) +
           " after step " + std::to_string(trial->last_step.value));
  }
  void On(const MetricsLogged& fact) {
    Live(fact.attempt, "logs");
    const int64_t expected = std::exchange(logged_[fact.attempt], fact.number) + 1;
    const bool is_lost = reality_.WasLogRestored() && fact.number > expected;
    if (fact.number != expected && !is_lost)
      Find(ToString(fact.attempt) + " logs for the " + std::to_string(fact.number) +
           ". time, and that is recorded as the " + std::to_string(expected) + ".");
  }
  void On(const TrialDecided& fact) { Live(fact.attempt, "is judged"); }
  void On(const CheckpointSaved& fact) {
    Live(fact.attempt, "saves a checkpoint");
    if (!fact.checkpoint.path.ends_with("-attempt-" + std::to_string(fact.attempt.number)))
      Find(ToString(fact.attempt) + " has not saved " + fact.checkpoint.path);
  }
  void On(const AttemptPartEnded& fact) {
    const AttemptBook* live = Live(fact.attempt, "ends on " + fact.executor);
    if (live == nullptr) return;
    const auto there = [&](const RankSlot& slot) { return slot.executor == fact.executor; };
    if (std::ranges::none_of(live->ranks, there) || std::ranges::all_of(live->ranks, there))
      Find(ToString(fact.attempt) + " ends in part on " + fact.executor +
           ", where it has no part or the last one");
    if (reality_.Runs(live->epoch, fact.executor))
      Find(ToString(fact.attempt) + " has ended on " + fact.executor + ", and runs there");
  }
  void On(const AttemptEnded& fact) {
    const AttemptBook* live = Live(fact.attempt, "ends");
    if (live != nullptr && reality_.Runs(live->epoch))
      Find(ToString(fact.attempt) + " has ended, and its gang runs");
  }

  const AttemptBook* Live(const AttemptId& attempt, const std::string& what) {
    const TrialBook* trial = books_.Find(attempt.trial);
    if (trial != nullptr && trial->live && trial->live->id == attempt) return &*trial->live;
    Find(ToString(attempt) + " " + what + ", and is not live");
    return nullptr;
  }

  std::set<AttemptId> stepped_;
  std::map<AttemptId, int64_t> logged_;
};

}  // namespace

std::unique_ptr<Checker> CheckAttempts(const Evidence& evidence) {
  return std::make_unique<Attempts>(evidence);
}

}  // namespace attune::sim
