#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "tests/sim/checkers/checkers.h"

namespace attune::sim {
namespace {

// Those that judge a trial among the others that have come as far.
const std::set<std::string, std::less<>> kRules = {"asha",   "extrapolate", "hyperband",
                                                   "median", "pasha",       "percentile"};

// A trial is judged once at a rung, among no more trials than have come as far; and a verdict's
// numbers agree with it.
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
      if (kRules.contains(rule.substr(0, rule.find(',')))) Judged(*decided);
    }
  }

 private:
  void Judged(const TrialDecided& fact) {
    const Reason& reason = fact.verdict.reason;
    if (reason.rung.value == 0) return;
    const TrialId& trial = fact.attempt.trial;
    const std::string who =
        "trial " + ToString(trial) + " at rung " + std::to_string(reason.rung.value);
    if (!judged_.insert({trial, reason.rung}).second) Find(who + " is judged twice");
    const auto there = std::ranges::count_if(furthest_, [&](const auto& entry) {
      return entry.first.sweep == trial.sweep && entry.second >= reason.rung;
    });
    if (reason.peers > there)
      Find(who + " is compared with " + std::to_string(reason.peers) + " trials, and " +
           std::to_string(there) + " have come as far");
    if (reason.rank < 1 || reason.rank > reason.peers)
      Find(who + " has rank " + std::to_string(reason.rank) + " of " +
           std::to_string(reason.peers));
    const Objective& objective = books_.Find(trial.sweep)->spec.objective();
    if (fact.verdict.kind == VerdictKind::kStop && objective.Better(reason.value, reason.cutoff))
      Find(who + " is stopped, and is better than the cutoff");
  }

  std::map<TrialId, Step> furthest_;
  std::set<std::tuple<TrialId, Step>> judged_;
};

}  // namespace

std::unique_ptr<Checker> CheckVerdicts(const Evidence& evidence) {
  return std::make_unique<Verdicts>(evidence);
}

}  // namespace attune::sim
