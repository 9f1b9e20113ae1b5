#include "core/brain/next_trial.h"

#include <utility>

#include "core/state/origin.h"

namespace attune {
namespace {

Fact Assign(const State& state, const Sweep& sweep, const Trial& trial, std::vector<RankSlot> ranks,
            const std::string& idempotency_key) {
  AttemptAssigned fact{.attempt = {trial.id, trial.attempts + 1},
                       .epoch = Epoch(state.last_epoch.value + 1),
                       .ranks = std::move(ranks),
                       .idempotency_key = idempotency_key};
  Origin origin = OriginOf(state, trial);
  if (origin.checkpoint != nullptr) fact.resume = origin.checkpoint->ref;
  fact.reason = std::move(origin.reason);
  // A milestone that was not reached yet stays. A new or promoted trial gets its next one.
  fact.milestone =
      trial.milestone.value > 0 ? trial.milestone : NextMilestone(sweep, trial, trial.last_step);
  return fact;
}

TrialId NextTrial(const Sweep& sweep) {
  return {sweep.id, TrialNumber(static_cast<uint32_t>(sweep.created))};
}

// Whether the sweep has trials that run or wait, so that its searcher can expect an event.
bool HasActiveTrials(const Sweep& sweep) { return !sweep.live.empty() || !sweep.pending.empty(); }

// The fact for the searcher's answer; nullopt if it waits.
std::optional<Fact> Follow(const Sweep& sweep, const Suggestion& suggestion,
                           std::optional<EventSeq> thought) {
  if (const auto* proposed = std::get_if<Proposed>(&suggestion)) {
    return TrialCreated{.trial = NextTrial(sweep),
                        .config = proposed->config,
                        .origin = sweep.spec.searcher.name,
                        .proposal = sweep.next_proposal,
                        .thought = thought,
                        .rationale = proposed->rationale};
  }
  if (const auto* exhausted = std::get_if<Exhausted>(&suggestion))
    return SearchExhausted{sweep.id, exhausted->text, thought};
  if (HasActiveTrials(sweep)) return std::nullopt;
  return SearchExhausted{
      sweep.id,
      "the searcher " + sweep.spec.searcher.name +
          " waits, but no trial runs that it could wait for: " + std::get<Wait>(suggestion).text,
      thought};
}

// The fact that creates a trial, ends the search, or begins a proposal; nullopt if the searcher
// waits.
std::optional<Fact> NewTrial(const Sweep& sweep) {
  if (HasInitialPoint(sweep)) {
    Proposed point = NextInitialPoint(sweep);
    return TrialCreated{.trial = NextTrial(sweep),
                        .config = std::move(point.config),
                        .origin = std::string(kInitialPoints),
                        .rationale = std::move(point.rationale)};
  }
  if (sweep.searcher->NeedsThread()) return ProposalBegun{sweep.id, sweep.next_proposal};
  return Follow(sweep, sweep.searcher->Suggest(sweep.next_proposal), std::nullopt);
}

SweepView ViewOf(const Sweep& sweep) {
  return {.paused = sweep.paused,
          .running = static_cast<int>(sweep.live.size()),
          .waiting = static_cast<int>(sweep.pending.size()),
          .created = sweep.created,
          .may_create = MayCreate(sweep)};
}

TrialPromoted MakePromotion(const Sweep& sweep, const Promote& promote) {
  TrialPromoted fact{.trial = {sweep.id, promote.trial},
                     .reason = promote.reason,
                     .config = promote.config,
                     .donor = promote.donor};
  if (promote.donor) fact.cloned = *FindCloneable(sweep, *promote.donor);
  return fact;
}

}  // namespace

bool HasInitialPoint(const Sweep& sweep) {
  return static_cast<size_t>(sweep.points_used) < sweep.spec.initial_points.size();
}

Proposed NextInitialPoint(const Sweep& sweep) {
  const auto& points = sweep.spec.initial_points;
  const auto used = static_cast<size_t>(sweep.points_used);
  return {points[used],
          {.rule = std::string(kInitialPoints),
           .text = "initial point " + std::to_string(used + 1) + " of " +
                   std::to_string(points.size()) + " of the sweep file"}};
}

bool MayStart(const Sweep& sweep) {
  return sweep.state == SweepState::kRunning &&
         (sweep.spec.max_concurrent_trials == 0 ||
          std::ssize(sweep.live) < sweep.spec.max_concurrent_trials);
}

bool MayCreate(const Sweep& sweep) {
  return !sweep.stopping_as && !sweep.exhausted &&
         (sweep.spec.stop.max_trials == 0 || sweep.created < sweep.spec.stop.max_trials);
}

NextAction ChooseNextAction(const Sweep& sweep, Time now, const SkippedTrials& passed) {
  for (TrialNumber number : sweep.pending) {
    const Trial* trial = sweep.Find(number);
    if (trial->not_before <= now && !passed.contains(number)) return trial;
  }
  if (sweep.stopping_as) return Done{sweep.reason};
  NextMove move = sweep.scheduler->Next(ViewOf(sweep));
  if (const auto* promote = std::get_if<Promote>(&move)) {
    if (!sweep.paused.contains(promote->trial) ||
        (promote->donor && FindCloneable(sweep, *promote->donor) == nullptr))
      return Wait{"the trial or the checkpoint that it would promote is gone"};
  }
  return move;
}

bool HasNext(const Sweep& sweep, Time now, const SkippedTrials& passed) {
  const NextAction next = ChooseNextAction(sweep, now, passed);
  const auto* move = std::get_if<NextMove>(&next);
  if (move == nullptr || std::holds_alternative<Promote>(*move)) return true;
  if (!std::holds_alternative<StartNew>(*move) || !MayCreate(sweep)) return false;
  return HasInitialPoint(sweep) || (!sweep.thinking && !sweep.search_waits);
}

const Trial* NextWaiting(const Sweep& sweep, Time now, const SkippedTrials& passed) {
  const NextAction next = ChooseNextAction(sweep, now, passed);
  if (const auto* trial = std::get_if<const Trial*>(&next)) return *trial;
  const auto* promote = std::get_if<Promote>(&std::get<NextMove>(next));
  return promote != nullptr ? sweep.Find(promote->trial) : nullptr;
}

void StartNext(const State& state, const Sweep& sweep, std::vector<RankSlot> ranks,
               const std::string& idempotency_key, Time now, Facts& facts,
               const SkippedTrials& passed) {
  const NextAction next = ChooseNextAction(sweep, now, passed);
  if (const auto* waiting = std::get_if<const Trial*>(&next)) {
    facts.push_back(Assign(state, sweep, **waiting, std::move(ranks), idempotency_key));
  } else if (const auto* promote = std::get_if<Promote>(&std::get<NextMove>(next))) {
    facts.push_back(MakePromotion(sweep, *promote));
  } else if (auto fresh = NewTrial(sweep)) {
    facts.push_back(*std::move(fresh));
  }
}

void EndThought(const Sweep& sweep, const Suggestion& suggestion, Facts& facts) {
  const EventSeq position = sweep.thinking->position;
  if (auto fact = Follow(sweep, suggestion, position)) {
    facts.push_back(*std::move(fact));
  } else {
    facts.push_back(SearchWaits{sweep.id, position, std::get<Wait>(suggestion).text});
  }
}

}  // namespace attune
