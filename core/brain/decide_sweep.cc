#include <algorithm>
#include <utility>

#include "base/result.h"
#include "core/brain/consequences.h"
#include "core/brain/decider.h"
#include "core/brain/drain.h"
#include "core/brain/edit.h"
#include "core/brain/next_trial.h"
#include "core/log/request_key.h"
#include "core/state/stoppers.h"

// The decisions on commands about sweeps.
namespace attune {

Status Decider::operator()(const CreateSweep& command) {
  if (const auto earlier = FindRequest(state_.by_key, command.idempotency_key);
      earlier != state_.by_key.end())
    return CheckSameBody(earlier->first, command.idempotency_key);
  if (Status made = CheckAlgorithms(*command.spec); !made.ok()) return made;
  if (!std::ranges::equal(command.spec->warm_start, command.warm_start, {}, {}, &WarmStart::from))
    return Error{ErrorCode::kInvalid,
                 "warm_start: the results of these sweeps are not available here; create the sweep "
                 "on the server that has them, or remove warm_start"};
  Add(SweepCreated{.sweep = SweepId(state_.last_sweep.value + 1),
                   .spec = command.spec,
                   .source = command.source,
                   .idempotency_key = command.idempotency_key,
                   .owner = command.owner,
                   .warm_start = command.warm_start,
                   .path = command.path});
  return {};
}

Status Decider::operator()(const PauseSweep& command) {
  const auto sweep = FindOpen(command.sweep);
  if (!sweep.ok()) return sweep.error();
  if (Status starts = CheckCanStart(**sweep); !starts.ok()) return starts;
  if ((*sweep)->state == SweepState::kPaused) return {};
  Add(SweepPaused{command.sweep, "paused on request"});
  YieldTrials(**sweep,
              Verdict::Pause({.rule = std::string(kSweepPaused),
                              .text = "saved and left: its sweep was paused"}),
              facts_);
  return {};
}

Status Decider::operator()(const ResumeSweep& command) {
  const auto sweep = FindOpen(command.sweep);
  if (!sweep.ok()) return sweep.error();
  if ((*sweep)->state != SweepState::kPaused) return {};
  Add(SweepResumed{command.sweep});
  for (const auto& [number, trial] : (*sweep)->trials) {
    if (trial.state == TrialState::kPaused && trial.paused_with_sweep)
      Requeue(**sweep, trial, "its sweep was resumed", now_, facts_);
    LeaveIfDrained(state_, trial, now_, facts_);
  }
  return {};
}

Status Decider::operator()(const ExtendSweep& command) {
  Sweep opened;
  const auto found = FindOpenOrEnded(command.sweep, opened);
  if (!found.ok()) return found.error();
  SweepSpec spec = (*found)->spec;
  if (command.max_trials) spec.stop.max_trials = *command.max_trials;
  if (command.max_time) spec.stop.max_time = *command.max_time;
  if (command.max_gpu_hours) spec.stop.max_gpu_hours = *command.max_gpu_hours;
  if (command.max_step) spec.max_step = *command.max_step;
  return Edit(**found, *found == &opened, std::move(spec),
              {.reason = "extended on request", .stop = "", .max_step = "max_step"});
}

Status Decider::operator()(const EditSweep& command) {
  Sweep opened;
  const auto found = FindOpenOrEnded(command.sweep, opened);
  if (!found.ok()) return found.error();
  if ((*found)->edited > command.seen)
    return Conflict("sweep " + ToString(command.sweep) +
                    " was edited in the meantime; read it again and retry");
  return Edit(**found, *found == &opened, *command.spec, {});
}

Status Decider::operator()(const StopSweep& command) {
  const auto sweep = FindOpen(command.sweep);
  if (!sweep.ok()) return sweep.error();
  if (!(*sweep)->stopping_as)
    BeginStopping(**sweep, SweepState::kStopped, "the sweep was stopped on request",
                  TrialState::kKilled, facts_);
  return {};
}

Status Decider::operator()(const KillSweep& command) {
  const auto sweep = FindOpen(command.sweep);
  if (!sweep.ok()) return sweep.error();
  if ((*sweep)->stopping_as == SweepState::kKilled) return {};
  Add(SweepStopping{command.sweep, SweepState::kKilled, "the sweep was killed on request"});
  KillTrials(**sweep, "killed with its sweep", nullptr, facts_);
  return {};
}

Status Decider::operator()(const AnnotateSweep& command) {
  if (Status stays = CheckStays(command.sweep); !stays.ok()) return stays;
  if (command.annotation != Annotation{}) Add(SweepAnnotated{command.sweep, command.annotation});
  return {};
}

Status Decider::operator()(const DeleteSweep& command) {
  if (Status exists = CheckExists(command.sweep); !exists.ok()) return exists;
  const std::string id = ToString(command.sweep);
  if (state_.Find(command.sweep) != nullptr)
    return Conflict("sweep " + id + " has not ended; kill it first, `attune sweep kill " + id +
                    "`, or wait for its end");
  if (ChangedSince(command.seen,
                   [&](const TrialId& trial) { return trial.sweep == command.sweep; }))
    return Conflict("sweep " + id + " has changed in the meantime; try again");
  if (command.delay.value <= 0) {
    DeleteEnded(state_, command.sweep, "", facts_);
  } else if (!state_.deletions.contains(command.sweep)) {
    Add(SweepDeletionScheduled{command.sweep,
                               Time{now_.us + static_cast<int64_t>(command.delay.value * 1e6)}});
  }
  return {};
}

Status Decider::operator()(const UndeleteSweep& command) {
  if (state_.deleted.contains(command.sweep))
    return NotFound("sweep " + ToString(command.sweep) +
                    " is already deleted; a deletion can be undone only before it happens");
  if (Status exists = CheckExists(command.sweep); !exists.ok()) return exists;
  if (state_.deletions.contains(command.sweep)) Add(SweepUndeleted{command.sweep});
  return {};
}

Status Decider::operator()(const Propose& command) {
  const Sweep* sweep = state_.Find(command.sweep);
  const bool due = sweep != nullptr && sweep->thinking && MayCreate(*sweep) &&
                   sweep->thinking->position == command.position &&
                   sweep->thinking->proposal == command.proposal;
  if (due) EndThought(*sweep, command.suggestion, facts_);
  return {};
}

Status Decider::CheckAlgorithms(const SweepSpec& spec) const {
  if (auto searcher = state_.algorithms->MakeSearcher(spec); !searcher.ok())
    return searcher.error();
  if (auto scheduler = state_.algorithms->MakeScheduler(spec); !scheduler.ok())
    return scheduler.error();
  return {};
}

Status Decider::Edit(const Sweep& sweep, bool ended, SweepSpec spec, const EditWords& words) {
  if (!ended) {
    if (Status starts = CheckCanStart(sweep); !starts.ok()) return starts;
  }
  auto changes = Changes(sweep.spec, spec);
  if (!changes.ok()) return changes.error();
  if (Status allowed = CheckEdit(sweep, spec, words); !allowed.ok()) return allowed;
  if (ended) {
    if (Status more = CheckHasMoreToDo(sweep, spec, words); !more.ok()) return more;
    Add(SweepReopened{sweep.id, words.reason});
  } else if (changes->empty()) {
    return {};
  }
  spec.initial_points =
      PointsInside(sweep.spec.initial_points, static_cast<size_t>(sweep.points_used), spec.space);
  Add(SweepEdited{sweep.id, std::move(spec), *std::move(changes)});
  return {};
}

Status Decider::CheckEdit(const Sweep& sweep, const SweepSpec& spec, const EditWords& words) const {
  if (spec.max_step < sweep.spec.max_step ||
      (sweep.spec.max_step.value == 0) != (spec.max_step.value == 0))
    return Error{ErrorCode::kInvalid, words.max_step + ": " + std::to_string(spec.max_step.value) +
                                          " is not above the current value " +
                                          std::to_string(sweep.spec.max_step.value) + "; raise it"};
  if (sweep.spec.External() && spec.stop.max_gpu_hours > 0)
    return Error{ErrorCode::kInvalid, words.stop +
                                          "max_gpu_hours: the sweep has no command, so Attune "
                                          "cannot count its GPU-hours; remove this limit"};
  if (Status made = CheckAlgorithms(spec); !made.ok()) return made;
  if (spec.stop.max_trials > 0 && spec.stop.max_trials < sweep.created)
    return Error{ErrorCode::kInvalid, words.stop +
                                          "max_trials: " + std::to_string(spec.stop.max_trials) +
                                          " is below the " + std::to_string(sweep.created) +
                                          " trials that the sweep already has; raise it"};
  return {};
}

Status Decider::CheckHasMoreToDo(const Sweep& sweep, const SweepSpec& spec,
                                 const EditWords& words) {
  StopPolicy stop = spec.stop;
  stop.patience = 0;  // counted anew
  stop.targets.clear();
  auto limit = LimitReached(sweep, stop, sweep.running_since);
  for (const Best& report : sweep.front) {
    if (!limit && ReachesTargets(spec, report.values)) limit = TargetReached(spec, report);
  }
  if (limit) return Conflict(limit->text + "; raise that limit as well, or start a new sweep");
  if (sweep.exhausted && spec.space == sweep.spec.space)
    return Conflict("the searcher " + sweep.spec.searcher.name +
                    " has no further configuration to try");
  if (spec.stop.max_trials == sweep.created)
    return Error{ErrorCode::kInvalid, words.stop + "max_trials: the sweep already has " +
                                          std::to_string(sweep.created) +
                                          " trials; set a higher limit"};
  return {};
}

}  // namespace attune
