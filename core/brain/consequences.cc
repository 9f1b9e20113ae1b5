#include "core/brain/consequences.h"

#include <algorithm>

#include "core/state/shared_state.h"

namespace attune {
namespace {

// If this many trials failed before the first report of the sweep, its program is broken.
constexpr int kFailedBeforeAnyReport = 3;

Outcome OutcomeOf(TrialState state) {
  switch (state) {
    case TrialState::kCompleted:
      return Outcome::kFinished;
    case TrialState::kStopped:
      return Outcome::kStopped;
    case TrialState::kFailed:
      return Outcome::kFailed;
    default:
      return Outcome::kKilled;
  }
}

bool HasEnded(const AttemptId& attempt, const Facts& facts) {
  return std::ranges::any_of(facts, [&](const Fact& fact) {
    const auto* ended = std::get_if<AttemptEnded>(&fact);
    return ended != nullptr && ended->attempt == attempt;
  });
}

// Ends the trial, and its attempt if that has no ranks. REQUIRES: no fact ends the attempt yet.
void EndWithAttempt(const Trial& trial, TrialState state, const std::string& reason, Facts& facts) {
  if (trial.live && trial.live->ranks.empty())
    facts.push_back(AttemptEnded{trial.live->id, OutcomeOf(state), {}});
  facts.push_back(TrialEnded{trial.id, state, reason});
}

}  // namespace

Step NextMilestone(const Sweep& sweep, const Trial& trial, Step after) {
  const Step last = LastStep(sweep, trial);
  if (trial.until.value > 0) return last;
  const auto next = sweep.scheduler->NextMilestone(TrialView{trial.id, trial.config}, after);
  if (!next) return last;
  return last.value > 0 ? std::min(*next, last) : *next;
}

void EndTrial(const Trial& trial, TrialState state, const std::string& reason, Facts& facts) {
  if (trial.live && HasEnded(trial.live->id, facts)) {
    facts.push_back(TrialEnded{trial.id, state, reason});
  } else {
    EndWithAttempt(trial, state, reason, facts);
  }
}

void KillTrials(const Sweep& sweep, const std::string& reason, const Trial* except, Facts& facts) {
  for (const auto& [number, trial] : sweep.trials) {
    if (!HasEnded(trial.state) && &trial != except)
      EndWithAttempt(trial, TrialState::kKilled, reason, facts);
  }
}

void BeginStopping(const Sweep& sweep, SweepState outcome, const std::string& reason,
                   TrialState waiting, Facts& facts) {
  facts.push_back(SweepStopping{sweep.id, outcome, reason});
  for (const auto& [number, trial] : sweep.trials) {
    if (!HasEnded(trial.state) && !trial.live)
      EndTrial(trial, waiting, "not started again: " + reason, facts);
  }
}

void YieldTrials(const Sweep& sweep, const Verdict& verdict, Facts& facts) {
  for (TrialNumber number : sweep.live) {
    const Trial& trial = *sweep.Find(number);
    const bool leaving = trial.yield_verdict && trial.yield_verdict->kind == VerdictKind::kStop;
    const bool spared = verdict.kind == VerdictKind::kStop && trial.requested;
    if (trial.state == TrialState::kRunning && !leaving && !spared)
      facts.push_back(TrialYielding{trial.id, verdict});
  }
}

const KeptCheckpoint* FindCloneable(const Sweep& sweep, const CheckpointId& checkpoint) {
  const KeptCheckpoint* kept = sweep.Find(checkpoint);
  return kept == nullptr || kept->unreported ? nullptr : kept;
}

void Requeue(const Sweep& sweep, const Trial& trial, const std::string& reason, Time not_before,
             Facts& facts, const std::string& avoided) {
  if (sweep.stopping_as && !trial.requested) {
    EndTrial(trial, TrialState::kKilled, reason + "; not started again: " + sweep.reason, facts);
  } else {
    facts.push_back(TrialRequeued{trial.id, reason, not_before, avoided});
  }
}

void EndIfWaiting(const Sweep& sweep, const Trial& trial, Facts& facts) {
  const bool waits = trial.state == TrialState::kPaused || trial.state == TrialState::kPending;
  if (waits && sweep.stopping_as && !trial.requested)
    EndTrial(trial, TrialState::kKilled, "not started again: " + sweep.reason, facts);
}

void FailTrial(const Sweep& sweep, const Trial& trial, const std::string& reason,
               const std::string& broken, Facts& facts) {
  EndTrial(trial, TrialState::kFailed, reason, facts);
  if (sweep.stopping_as) return;
  const int failed = sweep.Count(TrialState::kFailed) + 1;
  std::string why;
  if (failed > sweep.spec.failure.max_failed_trials) {
    why = std::to_string(failed) + " trials failed, more than failure.max_failed_trials allows";
  } else if (!sweep.reported && failed >= kFailedBeforeAnyReport) {
    why = "the first " + std::to_string(failed) + " trials failed before anything was reported";
  } else if (!sweep.reported) {
    why = broken;
  }
  if (why.empty()) return;
  facts.push_back(
      SweepStopping{sweep.id, SweepState::kFailed,
                    why + "; trial " + std::to_string(trial.id.number.value) + ": " + reason});
  KillTrials(sweep, "its sweep failed", &trial, facts);
}

void DeleteEnded(const State& state, SweepId sweep, const std::string& requester, Facts& facts) {
  const auto ended = state.ended.find(sweep);
  facts.push_back(SweepDeleted{
      .sweep = sweep,
      .shared = SharedStateWithout(state, sweep),
      .idempotency_key = ended == state.ended.end() ? "" : ended->second.idempotency_key,
      .requester = requester});
}

}  // namespace attune
