#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "core/log/event.h"
#include "core/state/state.h"

namespace attune {

// Checks the decisions of a log. It derives each decision again from the events before it: every
// proposal of a searcher, every verdict and promotion of a scheduler, and all other consequences of
// a report.
class Auditor {
 public:
  // REQUIRES: `algorithms` outlives the auditor.
  explicit Auditor(const Algorithms& algorithms) : state_(algorithms) {}

  // Checks the next event of the log. Returns a message if the brain decides something else at this
  // position. Do not continue after an event that is inconsistent with the earlier ones.
  std::optional<std::string> Next(const Event& event);

  int64_t proposals() const { return proposals_; }  // how many were checked
  int64_t verdicts() const { return verdicts_; }    // how many were checked, with promotions

 private:
  std::optional<std::string> CheckProposal(const TrialCreated& created);
  Suggestion SuggestAgain(const Sweep& sweep, ProposalNumber proposal, bool thought) const;
  std::optional<std::string> CheckPromotion(const TrialPromoted& promoted, Time now);
  std::optional<std::string> CheckExhausted(const SearchExhausted& exhausted);
  std::optional<std::string> CheckConsequence(const Event& event);
  void Expect(const TrialReported& reported, Time now);

  State state_;
  std::deque<Fact> expected_;  // the remaining consequences of the last report
  int64_t proposals_ = 0;
  int64_t verdicts_ = 0;
};

}  // namespace attune
