#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/brain/consequences.h"
#include "core/brain/contention.h"
#include "core/brain/decide.h"
#include "core/brain/next_trial.h"
#include "core/brain/retention.h"
#include "core/brain/stoppers.h"

namespace attune {
namespace {

// One of the sweep's limits was reached: what runs leaves at its next report.
void StopAtLimit(const Sweep& sweep, Time now, Facts& facts) {
  if (sweep.stopping_as || sweep.state == SweepState::kPaused) return;
  const auto limit = LimitReached(sweep, sweep.spec.stop, now);
  if (!limit) return;
  WindDown(sweep, SweepState::kCompleted, limit->text, TrialState::kStopped, facts);
  YieldTrials(sweep, Verdict::Stop({.rule = limit->rule, .text = "stopped: " + limit->text}),
              facts);
}

void DropSurplus(const Sweep& sweep, Facts& facts) {
  if (sweep.surplus.empty()) return;
  const Trial& trial = *sweep.Find(*sweep.surplus.begin());
  const KeptCheckpoint& kept = *Surplus(sweep, trial);
  facts.push_back(
      CheckpointDropped{.checkpoint = {trial.id, kept.attempt, kept.ref.step},
                        .executor = kept.executor,
                        .path = kept.ref.path,
                        .reason = "newer and better ones are kept, and nothing refers to it"});
}

// How the sweep has ended; nothing when it has not. Trials that nobody promoted end before it.
void End(const Sweep& sweep, Time now, Facts& facts) {
  if (!sweep.live.empty() || !sweep.pending.empty()) return;
  const bool ending = sweep.stopping_as.has_value();
  if (!ending && (sweep.state == SweepState::kPaused || HasNext(sweep, now))) return;
  for (const auto& [number, trial] : sweep.trials) {
    if (trial.state == TrialState::kPaused)
      EndTrial(trial, TrialState::kStopped, "not promoted by the end of the sweep", facts);
  }
  if (!facts.empty()) return;
  if (ending) {
    facts.push_back(SweepEnded{sweep.id, *sweep.stopping_as, sweep.reason});
  } else if (sweep.created > 0 && sweep.Count(TrialState::kFailed) == sweep.created) {
    facts.push_back(SweepEnded{sweep.id, SweepState::kFailed, "every trial failed"});
  } else {
    facts.push_back(SweepEnded{sweep.id, SweepState::kCompleted, ""});
  }
}

}  // namespace

std::vector<Fact> Advance(const State& state, const Reachable& reachable, Time now) {
  Facts facts;
  for (const auto& [id, sweep] : state.sweeps) {
    DropSurplus(sweep, facts);
    if (facts.empty()) StopAtLimit(sweep, now, facts);
    if (facts.empty()) End(sweep, now, facts);
    if (!facts.empty()) return facts;
  }
  StartGang(state, reachable, now, facts);
  return facts;
}

std::optional<Time> Due(const State& state, Time now) {
  std::optional<Time> first;
  const auto consider = [&](Time time) {
    if (time > now && (!first || time < *first)) first = time;
  };
  for (const auto& [id, sweep] : state.sweeps) {
    if (sweep.state != SweepState::kRunning) continue;
    for (TrialNumber number : sweep.pending) consider(sweep.Find(number)->not_before);
    if (const auto deadline = Deadline(sweep)) consider(*deadline);
  }
  return first;
}

}  // namespace attune
