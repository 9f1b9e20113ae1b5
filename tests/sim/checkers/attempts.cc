#include <algorithm>

#include "tests/sim/checkers/checkers.h"

namespace attune::sim {
namespace {

// A trial has one attempt at a time, and epochs grow. Only reports of the live attempt's gang are
// recorded.
class Attempts final : public Checker {
 public:
  using Checker::Checker;

  void OnEvent(const Event& event) override {
    std::visit([this](const auto& fact) { Check(fact); }, event.fact);
  }

 private:
  template <class Other>
  void Check(const Other&) {}

  void Check(const AttemptAssigned& fact) {
    const TrialBook* trial = books_.Find(fact.attempt.trial);
    if (fact.epoch <= books_.last_epoch) Report(ToString(fact.attempt) + " has an old epoch");
    if (trial == nullptr)
      return Report(ToString(fact.attempt) + " belongs to a trial that does not exist");
    if (trial->live)
      Report(ToString(fact.attempt) + " is assigned while " + ToString(trial->live->id) +
             " is live");
    if (fact.attempt.number != trial->attempts + 1)
      Report(ToString(fact.attempt) + " is not the next attempt");
  }
  void Check(const AttemptStarted& fact) { FindLive(fact.attempt, "has started"); }
  void Check(const AttemptFirstStep& fact) {
    if (FindLive(fact.attempt, "has trained a step") && !stepped_.insert(fact.attempt).second)
      Report(ToString(fact.attempt) + " trains its first step twice");
  }
  void Check(const RendezvousOpened& fact) { FindLive(fact.attempt, "opens its rendezvous"); }
  void Check(const TrialReported& fact) {
    const AttemptBook* live = FindLive(fact.attempt, "reports");
    if (live != nullptr && !reality_.HasReported(live->epoch, fact.report.step))
      Report(ToString(fact.attempt) + " did not send the recorded report of step " +
             std::to_string(fact.report.step.value));
    const TrialBook* trial = books_.Find(fact.attempt.trial);
    if (trial != nullptr && fact.report.step <= trial->last_step)
      Report(ToString(fact.attempt) + " reports step " + std::to_string(fact.report.step.value) +
             " after step " + std::to_string(trial->last_step.value));
  }
  void Check(const MetricsLogged& fact) {
    FindLive(fact.attempt, "logs");
    const int64_t expected = std::exchange(logged_[fact.attempt], fact.number) + 1;
    const bool is_lost = reality_.WasLogRestored() && fact.number > expected;
    if (fact.number != expected && !is_lost)
      Report(ToString(fact.attempt) + " has log record " + std::to_string(fact.number) +
             " where record " + std::to_string(expected) + " was expected");
  }
  void Check(const TrialDecided& fact) { FindLive(fact.attempt, "is judged"); }
  void Check(const CheckpointSaved& fact) {
    FindLive(fact.attempt, "saves a checkpoint");
    if (!fact.checkpoint.path.ends_with("-attempt-" + std::to_string(fact.attempt.number)))
      Report(ToString(fact.attempt) + " did not save " + fact.checkpoint.path);
  }
  void Check(const AttemptPartEnded& fact) {
    const AttemptBook* live = FindLive(fact.attempt, "ends on " + fact.executor);
    if (live == nullptr) return;
    const auto is_on_executor = [&](const RankSlot& slot) {
      return slot.executor == fact.executor;
    };
    if (std::ranges::none_of(live->ranks, is_on_executor) ||
        std::ranges::all_of(live->ranks, is_on_executor))
      Report(ToString(fact.attempt) + " ends in part on " + fact.executor +
             ", where it has no part or its last part");
    if (reality_.IsRunning(live->epoch, fact.executor))
      Report(ToString(fact.attempt) + " has ended on " + fact.executor + " but still runs there");
  }
  void Check(const AttemptEnded& fact) {
    const AttemptBook* live = FindLive(fact.attempt, "ends");
    if (live != nullptr && reality_.IsRunning(live->epoch))
      Report(ToString(fact.attempt) + " has ended but its gang still runs");
  }

  const AttemptBook* FindLive(const AttemptId& attempt, const std::string& what) {
    const TrialBook* trial = books_.Find(attempt.trial);
    if (trial != nullptr && trial->live && trial->live->id == attempt) return &*trial->live;
    Report(ToString(attempt) + " " + what + " but is not live");
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
