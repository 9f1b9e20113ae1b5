#pragma once

#include <string>
#include <vector>

#include "core/log/event.h"
#include "core/state/state.h"

// What several decisions lead to alike. Each function adds facts; none of those is applied yet.
namespace attune {

using Facts = std::vector<Fact>;

// The step of the trial's next decision after a step, never past its last one; 0: there is none.
Step NextMilestone(const Sweep& sweep, const Trial& trial, Step after);

// The checkpoint, where another trial can go on from it; null: it was dropped, or the report of its
// step has not come, and may never.
const KeptCheckpoint* ToClone(const Sweep& sweep, const CheckpointId& checkpoint);

// The trial is over. A gang that still runs leaves by itself or is torn down; an attempt without
// ranks ends here.
void EndTrial(const Trial& trial, TrialState state, const std::string& reason, Facts& facts);

// Every trial of the sweep that is not over, but for `except`, is killed. REQUIRES: no fact yet
// says that an attempt of one of those has ended, unless it has ranks.
void KillTrials(const Sweep& sweep, const std::string& reason, const Trial* except, Facts& facts);

// The sweep starts nothing more of its own. What runs goes on; what waits ends as `waiting`.
void WindDown(const Sweep& sweep, SweepState outcome, const std::string& reason, TrialState waiting,
              Facts& facts);

// What runs of the sweep gets this verdict at its next report. Trials that a person asked for are
// left alone by a stop.
void YieldTrials(const Sweep& sweep, const Verdict& verdict, Facts& facts);

// The trial waits for another attempt, or ends with its sweep. `avoided`: see TrialRequeued.
void Requeue(const Sweep& sweep, const Trial& trial, const std::string& reason, Time not_before,
             Facts& facts, const std::string& avoided = "");

// The trial's gang has left. Where it waits for another attempt, or for a promotion, and its sweep
// starts nothing more of its own, it is over.
void EndWaiting(const Sweep& sweep, const Trial& trial, Facts& facts);

// The trial has failed for good, and with it perhaps the sweep: where so many trials have failed,
// or the program is `broken`, for this reason, and nothing was ever reported.
void FailTrial(const Sweep& sweep, const Trial& trial, const std::string& reason,
               const std::string& broken, Facts& facts);

}  // namespace attune
