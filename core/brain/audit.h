#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "core/log/event.h"
#include "core/state/state.h"

namespace attune {

// Derives the decisions of a log again, each from the events before it: every proposal of a
// searcher, every verdict and promotion of a scheduler, and whatever else follows from a report.
class Auditor {
 public:
  // `algorithms` outlives the auditor.
  explicit Auditor(const Algorithms& algorithms) : state_(algorithms) {}

  // The next event of the log, from the first one on. A sentence when it is not what the brain
  // decides at this position; there is no next one after an event that does not fit the others.
  std::optional<std::string> Next(const Event& event);

  int64_t proposals() const { return proposals_; }  // checked so far
  int64_t verdicts() const { return verdicts_; }    // and promotions

 private:
  std::optional<std::string> CheckProposal(const TrialCreated& created);
  Suggestion Suggested(const Sweep& sweep, ProposalNumber proposal, bool thought) const;
  std::optional<std::string> CheckPromotion(const TrialPromoted& promoted, Time now);
  std::optional<std::string> CheckExhausted(const SearchExhausted& exhausted);
  std::optional<std::string> CheckConsequence(const Event& event);
  void Expect(const TrialReported& reported, Time now);

  State state_;
  std::deque<Fact> expected_;  // what follows from the last report
  int64_t proposals_ = 0;
  int64_t verdicts_ = 0;
};

}  // namespace attune
