#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/brain/agenda.h"
#include "core/brain/consequences.h"
#include "core/brain/contention.h"
#include "core/brain/decide.h"
#include "core/brain/next_trial.h"
#include "core/brain/quarantine.h"
#include "core/state/retention.h"
#include "core/state/stoppers.h"

namespace attune {
namespace {

// If the sweep has reached a limit, running trials stop at their next report.
void StopAtLimit(const Sweep& sweep, Time now, Facts& facts) {
  if (sweep.stopping_as || sweep.state == SweepState::kPaused) return;
  const auto limit = LimitReached(sweep, sweep.spec.stop, now);
  if (!limit) return;
  BeginStopping(sweep, SweepState::kCompleted, limit->text, TrialState::kStopped, facts);
  YieldTrials(sweep, Verdict::Stop({.rule = limit->rule, .text = "stopped: " + limit->text}),
              facts);
}

// If a client has sent nothing about its trial for too long, the trial waits for another client.
void EndLease(const Sweep& sweep, Time now, Facts& facts) {
  if (sweep.leases.empty() || sweep.leases.begin()->first > now) return;
  const Trial& trial = *sweep.Find(sweep.leases.begin()->second);
  facts.push_back(AttemptEnded{trial.live->id, Outcome::kLost, {}});
  if (trial.state == TrialState::kRunning) {
    Requeue(sweep, trial,
            "the lease of attempt " + std::to_string(trial.live->id.number) +
                " expired: its client told nothing for " + FormatShort(trial.live->lease.value) +
                " s",
            now, facts);
  } else {
    EndIfWaiting(sweep, trial, facts);
  }
}

void DropSurplus(const Sweep& sweep, Facts& facts) {
  if (sweep.surplus.empty()) return;
  const Trial& trial = *sweep.Find(*sweep.surplus.begin());
  const KeptCheckpoint& kept = *FindSurplus(sweep, trial);
  const bool before_start = kept.attempt <= trial.earlier_attempts;
  facts.push_back(CheckpointDropped{
      .checkpoint = {trial.id, kept.attempt, kept.ref.step},
      .executor = kept.executor,
      .path = kept.ref.path,
      .reason = before_start ? "its trial restarted from the beginning, and nothing else uses it"
                             : "newer or better ones replaced it, and nothing else uses it"});
}

constexpr size_t kMaxEndedAtOnce = 1'000;  // trials that one call of EndPaused ends

void EndPaused(const Sweep& sweep, const std::string& reason, Facts& facts) {
  for (const auto& [number, trial] : sweep.trials) {
    if (trial.state != TrialState::kPaused) continue;
    if (facts.size() >= kMaxEndedAtOnce) return;  // the next call ends the others
    const std::string at = "paused at step " + std::to_string(trial.last_step.value) + ", and ";
    EndTrial(trial, TrialState::kStopped, at + reason, facts);
  }
}

// When a sweep ends, checkpoints are dropped that only the scheduler retains.
void DropRetained(const Sweep& sweep, Facts& facts) {
  for (const CheckpointId& id : sweep.retained) {
    const KeptCheckpoint* kept = sweep.Find(id);
    if (kept == nullptr || !IsOnlyRetained(sweep, id)) continue;
    facts.push_back(CheckpointDropped{.checkpoint = id,
                                      .executor = kept->executor,
                                      .path = kept->ref.path,
                                      .reason = "the sweep has ended, and nothing else uses it"});
  }
}

std::string NoFiniteReport(const Sweep& sweep) {
  const bool one = sweep.spec.objectives.size() == 1;
  return "no finite report: " +
         (one ? "each value of " + sweep.spec.objectives.front().metric + " is NaN or infinite"
              : "in each report some metric of the sweep is NaN or infinite");
}

// Ends the sweep if nothing more can happen in it. Paused trials that were not promoted end first.
void End(const Sweep& sweep, Time now, Facts& facts) {
  if (!sweep.live.empty() || !sweep.pending.empty()) return;
  std::string reason = sweep.reason;
  std::string unpromoted = "not promoted by the end of the sweep";
  if (!sweep.stopping_as) {
    if (sweep.state == SweepState::kPaused || HasNext(sweep, now)) return;
    if (sweep.thinking && MayCreate(sweep)) return;  // the searcher may propose a trial
    const NextAction next = ChooseNextAction(sweep, now);
    const NextMove& move = std::get<NextMove>(next);
    if (const auto* done = std::get_if<Done>(&move)) {
      reason = done->text;
      unpromoted = "not promoted: " + reason;
    }
    if (const auto* wait = std::get_if<Wait>(&move)) {
      // No event can come that the scheduler waits for, except the ends of the paused trials.
      reason = "the scheduler " + sweep.spec.scheduler.name +
               " waits, but no trial runs that it could wait for" +
               (wait->text.empty() ? "" : ": " + wait->text);
      unpromoted = "not promoted: " + reason;
    }
  }
  EndPaused(sweep, unpromoted, facts);
  if (facts.empty()) DropRetained(sweep, facts);
  if (!facts.empty()) return;
  if (sweep.stopping_as) {
    facts.push_back(SweepEnded{sweep.id, *sweep.stopping_as, reason});
  } else if (sweep.created > 0 && sweep.Count(TrialState::kFailed) == sweep.created) {
    facts.push_back(SweepEnded{sweep.id, SweepState::kFailed, "every trial failed"});
  } else if (sweep.reported && !sweep.finite) {
    facts.push_back(SweepEnded{sweep.id, SweepState::kFailed, NoFiniteReport(sweep)});
  } else {
    facts.push_back(SweepEnded{sweep.id, SweepState::kCompleted, std::move(reason)});
  }
}

// Forgets an executor that was lost long ago, and the deletions that it still had to do.
void ForgetLost(const State& state, Time now, const Agenda& agenda, Facts& facts) {
  const auto& lost = agenda.LostExecutors();
  if (lost.empty()) return;
  const auto& [since, name] = *lost.begin();
  const bool long_ago = now.us - since.us >= kForgetLostAfterUs;
  if (!long_ago && lost.size() <= kLostExecutors) return;
  std::string reason = long_ago ? "it was lost a week ago"
                                : "more than " + std::to_string(kLostExecutors) +
                                      " executors are lost, and it was lost first";
  if (const auto removals = state.removals.find(name); removals != state.removals.end())
    reason += "; " + std::to_string(removals->second.size()) +
              " checkpoints that it should delete stay on it";
  const std::string& folder = FolderOf(state.executors.at(name));
  const bool others = std::ranges::any_of(state.executors, [&](const auto& other) {
    return other.first != name && FolderOf(other.second) == folder;
  });
  if (const auto sweeps = state.sweep_removals.find(folder);
      sweeps != state.sweep_removals.end() && !others)
    reason += "; files of " + std::to_string(sweeps->second.size()) + " deleted sweeps stay on it";
  facts.push_back(ExecutorForgotten{name, std::move(reason)});
}

// Deletes one sweep whose deletion is due.
void DeleteIfDue(const State& state, Time now, Facts& facts) {
  for (const auto& [sweep, deletion] : state.deletions) {
    if (deletion.at > now) continue;
    return DeleteEnded(state, sweep, deletion.requester, facts);
  }
}

}  // namespace

std::vector<Fact> Advance(const State& state, const Reachable& reachable, Time now,
                          Agenda& agenda) {
  Facts facts;
  for (const SweepId id : agenda.Sweeps(now)) {
    const Sweep* sweep = state.Find(id);
    if (sweep == nullptr) {
      agenda.RemoveSweep(id);
      continue;
    }
    // Limits come before drops: a trial may save checkpoints as fast as they can be dropped.
    StopAtLimit(*sweep, now, facts);
    if (facts.empty()) DropSurplus(*sweep, facts);
    if (facts.empty()) EndLease(*sweep, now, facts);
    if (facts.empty()) End(*sweep, now, facts);
    if (!facts.empty()) return facts;
    agenda.SetIdle(state, *sweep, now);
  }
  DeleteIfDue(state, now, facts);
  if (facts.empty()) EndQuarantine(state, now, agenda, facts);
  if (facts.empty()) StartGang(state, reachable, now, agenda, facts);
  if (facts.empty()) ForgetLost(state, now, agenda, facts);
  return facts;
}

std::vector<Fact> Advance(const State& state, const Reachable& reachable, Time now) {
  Agenda agenda;
  agenda.Update(state, {.all = true});
  return Advance(state, reachable, now, agenda);
}

std::optional<Time> Due(const State& state, Time now) {
  std::optional<Time> first;
  const auto consider = [&](Time time) {
    if (time > now && (!first || time < *first)) first = time;
  };
  ExecutorEnds ends;
  for (const auto& [name, executor] : state.executors) {
    if (const auto end = EndTimeOf(executor); end && !executor.lost) ends.emplace(*end, name);
  }
  for (const auto& [id, sweep] : state.sweeps) {
    if (const auto due = DueOf(sweep, ends, now)) consider(*due);
  }
  for (const auto& [name, executor] : state.executors) {
    if (CanBeForgotten(executor)) consider(Time{executor.lost_at.us + kForgetLostAfterUs});
    if (executor.quarantine) consider(executor.quarantine->until);
  }
  for (const auto& [sweep, deletion] : state.deletions) consider(deletion.at);
  return first;
}

}  // namespace attune
