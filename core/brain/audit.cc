#include "core/brain/audit.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "core/brain/next_trial.h"
#include "core/brain/record.h"
#include "core/brain/thought.h"
#include "core/log/command.h"
#include "core/log/fact_fields.h"
#include "core/state/origin.h"
#include "core/state/replay.h"

namespace attune {

namespace {

// The same kind of fact with the same content, bit for bit.
bool Same(const Fact& a, const Fact& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&]<class T>(const T& fact) {
        ArchiveWriter one, other;
        one(fact);
        other(std::get<T>(b));
        return one.Take() == other.Take();
      },
      a);
}

// The part of a decision that a person looks at.
std::string Text(const Fact& fact) {
  if (const auto* decided = std::get_if<TrialDecided>(&fact))
    return std::string(Name(decided->verdict.kind)) + " (" + decided->verdict.reason.text + ")";
  if (const auto* promoted = std::get_if<TrialPromoted>(&fact))
    return "promotion of trial " + ToString(promoted->trial) + " (" + promoted->reason.text + ")";
  if (const auto* ended = std::get_if<TrialEnded>(&fact))
    return std::string(Name(ended->state)) + " (" + ended->reason + ")";
  if (const auto* yielding = std::get_if<TrialYielding>(&fact))
    return "yield (" + yielding->verdict.reason.text + ")";
  return "another kind of fact";
}

std::string Text(const Config& config) {
  std::string text;
  for (const auto& [name, value] : config.entries())
    text += (text.empty() ? "" : ", ") + name + "=" + FormatValue(value);
  return text;
}

// Whether the proposal has the number that is due. Logs of before proposals were counted read as if
// each had its trial's number.
bool Counted(const Sweep& sweep, const TrialCreated& created) {
  return *created.proposal == sweep.next_proposal ||
         created.proposal->value == created.trial.number.value;
}

// Whether the state has what Apply takes for granted of an event that a brain has written.
bool Fits(const State& state, const Event& event) {
  const Fact& fact = event.fact;
  const auto is = [&]<class... F>() { return (std::holds_alternative<F>(fact) || ...); };
  if (event.seq.value != state.last_seq.value + 1) return false;
  if (const auto* created = std::get_if<SweepCreated>(&fact))
    return state.Find(created->sweep) == nullptr;
  if (const auto* lost = std::get_if<ExecutorLost>(&fact))
    return state.executors.contains(lost->name);
  if (const auto* drained = std::get_if<ExecutorDrained>(&fact))
    return state.executors.contains(drained->name);
  if (const auto* resumed = std::get_if<ExecutorResumed>(&fact))
    return state.executors.contains(resumed->name);
  if (const auto* health = std::get_if<ExecutorHealth>(&fact))
    return state.executors.contains(health->name);
  if (const auto* aside = std::get_if<ExecutorSetAside>(&fact))
    return state.executors.contains(aside->name);
  if (const auto* readmitted = std::get_if<ExecutorReadmitted>(&fact))
    return state.executors.contains(readmitted->name);
  if (const auto* excluded = std::get_if<ExecutorExcluded>(&fact)) {
    if (!state.executors.contains(excluded->name)) return false;
  }
  if (const auto* forgotten = std::get_if<ExecutorForgotten>(&fact)) {
    const auto executor = state.executors.find(forgotten->name);
    return executor != state.executors.end() && executor->second.attempts.empty();
  }
  const auto id = SweepOf(fact);
  if (!id || is.operator()<CheckpointRemoved, SweepRemoved, ReservationReleased>()) return true;
  if (is.operator()<SweepDeleted>()) return *id <= state.last_sweep && state.Find(*id) == nullptr;
  const Sweep* sweep = state.Find(*id);
  if (is.operator()<SweepReopened>()) return state.ended.contains(*id);
  if (is.operator()<CheckpointPinned, CheckpointDropped>()) return *id <= state.last_sweep;
  if (sweep == nullptr) return false;
  const auto answers = [&](std::optional<EventSeq> thought) {
    return !thought || (sweep->thinking && sweep->thinking->position == *thought);
  };
  if (const auto* begun = std::get_if<ProposalBegun>(&fact))
    return !sweep->thinking && begun->proposal == sweep->next_proposal;
  if (const auto* waits = std::get_if<SearchWaits>(&fact)) return answers(waits->thought);
  if (const auto* exhausted = std::get_if<SearchExhausted>(&fact))
    return answers(exhausted->thought);
  if (const auto* created = std::get_if<TrialCreated>(&fact))
    return created->trial.number.value == static_cast<uint32_t>(sweep->created) &&
           answers(created->thought);
  const auto number = TrialOf(fact);
  if (!number || is.operator()<TrialReopened>()) return true;
  const Trial* trial = state.Find(*number);
  if (trial == nullptr) return false;
  if (const auto* assigned = std::get_if<AttemptAssigned>(&fact)) {
    return !trial->live && std::ranges::all_of(assigned->ranks, [&](const RankSlot& slot) {
      return state.executors.contains(slot.executor);
    });
  }
  if (const auto* decided = std::get_if<TrialDecided>(&fact);
      decided != nullptr && decided->verdict.kind == VerdictKind::kExploit && !decided->cloned)
    return false;
  if (const auto* promoted = std::get_if<TrialPromoted>(&fact))
    return sweep->paused.contains(promoted->trial.number) &&
           promoted->donor.has_value() == promoted->cloned.has_value();
  return trial->live || is.operator()<TrialYielding, TrialRequeued, TrialEnded>();
}

}  // namespace

std::optional<std::string> Auditor::Next(const Event& event) {
  if (const Status made = CanReplay(*state_.algorithms, event); !made.ok())
    return made.error().message;
  if (!Fits(state_, event)) return "does not fit what came before it: no brain has written this";
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

// By the searcher as it is now, or as it was when the thought began.
Suggestion Auditor::Suggested(const Sweep& sweep, ProposalNumber proposal, bool thought) const {
  return thought ? ThoughtOf(state_, sweep).searcher->Suggest(proposal)
                 : sweep.searcher->Suggest(proposal);
}

std::optional<std::string> Auditor::CheckProposal(const TrialCreated& created) {
  if (created.origin == kEnqueued) return std::nullopt;
  ++proposals_;
  const Sweep& sweep = *state_.Find(created.trial.sweep);
  if (created.proposal && !Counted(sweep, created))
    return "trial " + ToString(created.trial) + " is recorded as proposal " +
           std::to_string(created.proposal->value) + "; the next one is " +
           std::to_string(sweep.next_proposal.value);
  if (created.thought && !created.proposal)
    return "trial " + ToString(created.trial) + " was thought of, and is no proposal";
  const ProposalNumber number = created.proposal.value_or(sweep.next_proposal);
  const Suggestion proposed =
      HasPoint(sweep) ? NextPoint(sweep) : Suggested(sweep, number, created.thought.has_value());
  const auto* again = std::get_if<Proposed>(&proposed);
  const std::string recorded = "trial " + ToString(created.trial) + " is recorded with ";
  const std::string here = "; at this place " + sweep.spec.searcher.name;
  if (again == nullptr || again->config != created.config)
    return recorded + Text(created.config) + here + " proposes " +
           (again != nullptr ? Text(again->config) : "nothing");
  if (!created.rationale || **created.rationale == again->rationale) return std::nullopt;
  return recorded + "the reason \"" + (*created.rationale)->text + '"' + here + " says \"" +
         again->rationale.text + '"';
}

std::optional<std::string> Auditor::CheckPromotion(const TrialPromoted& promoted, Time now) {
  ++verdicts_;
  Facts facts;
  const Sweep& sweep = *state_.Find(promoted.trial.sweep);
  PassedOver over;  // those that may wait for executors of their own
  for (const TrialNumber number : sweep.pending) {
    const Trial& trial = *sweep.Find(number);
    if (OriginOf(state_, trial).readers || !trial.avoided.empty()) over.insert(number);
  }
  if (HasNext(sweep, now, over)) StartNext(state_, sweep, {}, "", now, facts, over);
  const Fact recorded = promoted;
  if (!facts.empty() && Same(recorded, facts.front())) return std::nullopt;
  return "sweep " + ToString(sweep.id) + ": recorded is a " + Text(recorded) + "; at this place " +
         sweep.spec.scheduler.name + " has " +
         (facts.empty() ? "nothing to start" : "a " + Text(facts.front()));
}

std::optional<std::string> Auditor::CheckExhausted(const SearchExhausted& exhausted) {
  const Sweep& sweep = *state_.Find(exhausted.sweep);
  const Suggestion suggestion =
      Suggested(sweep, sweep.next_proposal, exhausted.thought.has_value());
  const auto* proposed = std::get_if<Proposed>(&suggestion);
  if (proposed == nullptr) return std::nullopt;
  return "sweep " + ToString(sweep.id) + ": the search is recorded as exhausted; at this place " +
         sweep.spec.searcher.name + " proposes " + Text(proposed->config);
}

// The facts that the report leads to beside itself.
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
  if (Same(expected, event.fact)) return std::nullopt;
  expected_.clear();
  const auto trial = TrialOf(expected);
  return (trial ? "trial " + ToString(*trial) : "a sweep") + ": recorded is " + Text(event.fact) +
         "; at this place follows " + Text(expected);
}

}  // namespace attune
