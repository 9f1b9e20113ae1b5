#include "core/brain/audit.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/result.h"
#include "core/brain/next_trial.h"
#include "core/brain/record.h"
#include "core/brain/thought.h"
#include "core/log/command.h"
#include "core/log/fields.h"
#include "core/state/origin.h"
#include "core/state/replay.h"

namespace attune {

namespace {

// Whether two values are saved as the same bytes. This is true for two NaNs, too.
template <class T>
bool AreSame(const T& a, const T& b) {
  ArchiveWriter one, other;
  one(a);
  other(b);
  return one.Take() == other.Take();
}

// Clears the texts of a decision that explain it to people. Another version of Attune may word them
// differently.
void ClearTexts(Fact& fact) {
  if (auto* decided = std::get_if<TrialDecided>(&fact)) decided->verdict.reason.text.clear();
  if (auto* promoted = std::get_if<TrialPromoted>(&fact)) promoted->reason.text.clear();
  if (auto* yielding = std::get_if<TrialYielding>(&fact)) yielding->verdict.reason.text.clear();
  if (auto* ended = std::get_if<TrialEnded>(&fact)) ended->reason.clear();
}

bool AreSameDecision(Fact a, Fact b) {
  ClearTexts(a);
  ClearTexts(b);
  return AreSame(a, b);
}

bool AreSameRationale(Rationale a, Rationale b) {
  a.text.clear();
  b.text.clear();
  return AreSame(a, b);
}

// The decision as text for a message.
std::string Text(const Fact& fact) {
  if (const auto* decided = std::get_if<TrialDecided>(&fact))
    return std::string(Name(decided->verdict.kind)) + " (" + decided->verdict.reason.text + ")";
  if (const auto* promoted = std::get_if<TrialPromoted>(&fact))
    return "promotion of trial " + ToString(promoted->trial) + " (" + promoted->reason.text + ")";
  if (const auto* ended = std::get_if<TrialEnded>(&fact))
    return std::string(Name(ended->state)) + " (" + ended->reason + ")";
  if (const auto* yielding = std::get_if<TrialYielding>(&fact))
    return "yield (" + yielding->verdict.reason.text + ")";
  return "another kind of event";
}

std::string Text(const Config& config) {
  std::string text;
  for (const auto& [name, value] : config.entries())
    text += (text.empty() ? "" : ", ") + name + "=" + FormatValue(value);
  return text;
}

bool HasSweep(const State& state, SweepId sweep, Needs needs) {
  const bool was_created = sweep <= state.last_sweep;
  const bool is_live = state.Find(sweep) != nullptr;
  if (needs == Needs::kNewSweep) return !is_live;
  if (needs == Needs::kEndedSweep) return state.ended.contains(sweep);
  if (needs == Needs::kGoneSweep) return !is_live;
  if (needs == Needs::kCreatedSweep) return was_created;
  return is_live;
}

bool HasTrial(const State& state, const TrialId& trial, Needs needs) {
  const Trial* const found = state.Find(trial);
  return found != nullptr && (needs == Needs::kTrial || found->live);
}

// Whether the state has what the row of the event needs.
bool HasNeeded(const State& state, const Fact& fact) {
  const Needs needs = InfoOf(fact).needs;
  if (needs == Needs::kNothing) return true;
  if (needs == Needs::kExecutor) return state.executors.contains(*ExecutorOf(fact));
  if (needs == Needs::kTrial || needs == Needs::kLiveAttempt)
    return HasTrial(state, *TrialOf(fact), needs);
  return HasSweep(state, *SweepOf(fact), needs);
}

// ---- requirements of events in addition to their rows ------------------------------------------

// Whether the searcher is computing the proposal that the event answers.
bool IsThinking(const State& state, SweepId id, std::optional<EventSeq> thought) {
  const auto& thinking = state.Find(id)->thinking;
  return !thought || (thinking && thinking->position == *thought);
}

bool IsConsistent(const State& state, const ProposalBegun& begun) {
  const Sweep& sweep = *state.Find(begun.sweep);
  return !sweep.thinking && begun.proposal == sweep.next_proposal;
}
bool IsConsistent(const State& state, const SearchWaits& waits) {
  return IsThinking(state, waits.sweep, waits.thought);
}
bool IsConsistent(const State& state, const SearchExhausted& exhausted) {
  return IsThinking(state, exhausted.sweep, exhausted.thought);
}
bool IsConsistent(const State& state, const TrialCreated& created) {
  const Sweep& sweep = *state.Find(created.trial.sweep);
  return created.trial.number.value == static_cast<uint32_t>(sweep.created) &&
         IsThinking(state, created.trial.sweep, created.thought);
}
bool IsConsistent(const State& state, const AttemptAssigned& assigned) {
  return !state.Find(assigned.attempt.trial)->live &&
         std::ranges::all_of(assigned.ranks, [&](const RankSlot& slot) {
           return state.executors.contains(slot.executor);
         });
}
bool IsConsistent(const State&, const TrialDecided& decided) {
  return decided.verdict.kind != VerdictKind::kExploit || decided.cloned;
}
bool IsConsistent(const State& state, const TrialPromoted& promoted) {
  return state.Find(promoted.trial.sweep)->paused.contains(promoted.trial.number) &&
         promoted.donor.has_value() == promoted.cloned.has_value();
}
bool IsConsistent(const State& state, const ExecutorExcluded& excluded) {
  return state.executors.contains(excluded.name);
}
bool IsConsistent(const State& state, const ExecutorForgotten& forgotten) {
  return state.executors.at(forgotten.name).attempts.empty();
}

// Checks the number of a proposal.
std::optional<std::string> CheckNumber(const Sweep& sweep, const TrialCreated& created) {
  if (created.proposal && *created.proposal != sweep.next_proposal)
    return "trial " + ToString(created.trial) + " is recorded as proposal " +
           std::to_string(created.proposal->value) + ", but the next one is " +
           std::to_string(sweep.next_proposal.value);
  if (created.thought && !created.proposal)
    return "trial " + ToString(created.trial) +
           " has a recorded computation of its proposal, but no proposal number";
  return std::nullopt;
}

// Whether the state has everything that Apply assumes of an event that a brain has written.
bool CanFollow(const State& state, const Event& event) {
  if (event.seq <= state.last_seq) return false;  // gaps are allowed: events may have been erased
  if (!HasNeeded(state, event.fact)) return false;
  bool is_consistent = true;
  Dispatch<kAudit>(event.fact, [&](const auto& fact) -> decltype(void(IsConsistent(state, fact))) {
    is_consistent = IsConsistent(state, fact);
  });
  return is_consistent;
}

}  // namespace

std::optional<std::string> Auditor::Next(const Event& event) {
  if (const Status made = CanReplay(*state_.algorithms, event); !made.ok())
    return made.error().message;
  if (!CanFollow(state_, event))
    return "contradicts the events before it, so Attune did not write it; restore the database "
           "from a backup";
  std::optional<std::string> fault;
  if (!expected_.empty()) {
    fault = CheckConsequence(event);
  } else if (const auto* created = std::get_if<TrialCreated>(&event.fact)) {
    fault = CheckProposal(*created);
  } else if (const auto* exhausted = std::get_if<SearchExhausted>(&event.fact)) {
    fault = CheckExhausted(*exhausted);
  } else if (const auto* promoted = std::get_if<TrialPromoted>(&event.fact)) {
    fault = CheckPromotion(*promoted, event.time);
  } else if (const auto* reported = std::get_if<TrialReported>(&event.fact)) {
    Expect(*reported, event.time);
  }
  Apply(state_, event);
  return fault;
}

// The suggestion of the current searcher, or of the searcher as it was at the ProposalBegun.
Suggestion Auditor::SuggestAgain(const Sweep& sweep, ProposalNumber proposal, bool thought) const {
  return thought ? ThoughtOf(state_, sweep).searcher->Suggest(proposal)
                 : sweep.searcher->Suggest(proposal);
}

std::optional<std::string> Auditor::CheckProposal(const TrialCreated& created) {
  if (created.origin == kEnqueued) return std::nullopt;
  ++proposals_;
  const Sweep& sweep = *state_.Find(created.trial.sweep);
  if (auto fault = CheckNumber(sweep, created)) return fault;
  const ProposalNumber number = created.proposal.value_or(sweep.next_proposal);
  const Suggestion proposed = HasInitialPoint(sweep)
                                  ? NextInitialPoint(sweep)
                                  : SuggestAgain(sweep, number, created.thought.has_value());
  const auto* again = std::get_if<Proposed>(&proposed);
  const std::string recorded = "trial " + ToString(created.trial) + " is recorded with ";
  const std::string here = ", but " + sweep.spec.searcher.name;
  if (again == nullptr || again->config != created.config)
    return recorded + Text(created.config) + here + " now proposes " +
           (again != nullptr ? Text(again->config) : "nothing");
  if (!created.rationale || AreSameRationale(**created.rationale, again->rationale))
    return std::nullopt;
  return recorded + "the reason \"" + (*created.rationale)->text + '"' + here + " now gives \"" +
         again->rationale.text + '"';
}

std::optional<std::string> Auditor::CheckPromotion(const TrialPromoted& promoted, Time now) {
  ++verdicts_;
  Facts facts;
  const Sweep& sweep = *state_.Find(promoted.trial.sweep);
  SkippedTrials over;  // trials that may wait for particular executors
  for (const TrialNumber number : sweep.pending) {
    const Trial& trial = *sweep.Find(number);
    if (OriginOf(state_, trial).readers || !trial.avoided.empty()) over.insert(number);
  }
  if (HasNext(sweep, now, over)) StartNext(state_, sweep, {}, "", now, facts, over);
  const Fact recorded = promoted;
  if (!facts.empty() && AreSameDecision(recorded, facts.front())) return std::nullopt;
  return "sweep " + ToString(sweep.id) + ": the log has a " + Text(recorded) + ", but " +
         sweep.spec.scheduler.name +
         (facts.empty() ? " now starts nothing" : " now gives a " + Text(facts.front()));
}

std::optional<std::string> Auditor::CheckExhausted(const SearchExhausted& exhausted) {
  const Sweep& sweep = *state_.Find(exhausted.sweep);
  const Suggestion suggestion =
      SuggestAgain(sweep, sweep.next_proposal, exhausted.thought.has_value());
  const auto* proposed = std::get_if<Proposed>(&suggestion);
  if (proposed == nullptr) return std::nullopt;
  return "sweep " + ToString(sweep.id) + ": the log says that the search is exhausted, but " +
         sweep.spec.searcher.name + " now proposes " + Text(proposed->config);
}

// Stores the facts that the report causes.
void Auditor::Expect(const TrialReported& reported, Time now) {
  const Trial* trial = state_.Find(reported.attempt.trial);
  if (trial == nullptr || !trial->live) return;
  Facts facts;
  const auto& ranks = trial->live->ranks;
  Record(state_,
         RecordFact{trial->live->epoch, reported, ranks.empty() ? "" : ranks.front().executor}, now,
         facts);
  if (facts.empty()) return;
  expected_.assign(std::make_move_iterator(facts.begin() + 1),
                   std::make_move_iterator(facts.end()));
}

std::optional<std::string> Auditor::CheckConsequence(const Event& event) {
  const Fact expected = std::move(expected_.front());
  expected_.pop_front();
  if (std::holds_alternative<TrialDecided>(expected)) ++verdicts_;
  if (AreSameDecision(expected, event.fact)) return std::nullopt;
  expected_.clear();
  const auto trial = TrialOf(expected);
  return (trial ? "trial " + ToString(*trial) : "a sweep") + ": the log has " + Text(event.fact) +
         ", but the decision is now " + Text(expected);
}

}  // namespace attune
