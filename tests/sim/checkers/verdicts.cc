#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "tests/sim/checkers/checkers.h"

namespace attune::sim {
namespace {

// Rules that compare a trial with the others at the same rung.
const std::set<std::string, std::less<>> kRules = {"asha",   "extrapolate", "hyperband",
                                                   "median", "pasha",       "percentile"};

// A trial is judged once at a rung and compared only with trials that reached the rung. The numbers
// of a verdict are consistent.
class Verdicts final : public Checker {
 public:
  using Checker::Checker;

  void OnEvent(const Event& event) override {
    if (const auto* reported = std::get_if<TrialReported>(&event.fact)) {
      Step& furthest = furthest_[reported->attempt.trial];
      furthest = std::max(furthest, reported->report.step);
    }
    if (const auto* decided = std::get_if<TrialDecided>(&event.fact)) {
      const std::string& rule = decided->verdict.reason.rule;
      if (kRules.contains(rule.substr(0, rule.find(',')))) CheckVerdict(*decided);
    }
  }

 private:
  void CheckVerdict(const TrialDecided& fact) {
    const Reason& reason = fact.verdict.reason;
    if (reason.rung.value == 0) return;
    const TrialId& trial = fact.attempt.trial;
    const std::string who =
        "trial " + ToString(trial) + " at rung " + std::to_string(reason.rung.value);
    if (!judged_.insert({trial, reason.rung}).second) Report(who + " is judged twice");
    const auto reached = std::ranges::count_if(furthest_, [&](const auto& entry) {
      return entry.first.sweep == trial.sweep && entry.second >= reason.rung;
    });
    if (reason.peers > reached)
      Report(who + " is compared with " + std::to_string(reason.peers) + " trials, but only " +
             std::to_string(reached) + " have reached it");
    if (reason.rank < 1 || reason.rank > reason.peers)
      Report(who + " has rank " + std::to_string(reason.rank) + " of " +
             std::to_string(reason.peers));
    const Objective& objective = books_.Find(trial.sweep)->spec.objective();
    if (fact.verdict.kind == VerdictKind::kStop && objective.Better(reason.value, reason.cutoff))
      Report(who + " is stopped although it is better than the cutoff");
  }

  std::map<TrialId, Step> furthest_;
  std::set<std::tuple<TrialId, Step>> judged_;
};

}  // namespace

std::unique_ptr<Checker> CheckVerdicts(const Evidence& evidence) {
  return std::make_unique<Verdicts>(evidence);
}

}  // namespace attune::sim
