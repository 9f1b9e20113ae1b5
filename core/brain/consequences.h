#pragma once

#include <string>
#include <vector>

#include "core/log/event.h"
#include "core/state/state.h"

// Consequences that several decisions share. Each function appends facts; none of them is applied
// yet.
namespace attune {

using Facts = std::vector<Fact>;

// The step of the trial's next decision after the step `after`, at most its last step; 0: none.
Step NextMilestone(const Sweep& sweep, const Trial& trial, Step after);

// The checkpoint, if another trial can resume from it. Null if it was dropped, or if its step is
// not reported.
const KeptCheckpoint* FindCloneable(const Sweep& sweep, const CheckpointId& checkpoint);

// Ends the trial. A gang that still runs leaves by itself or is killed by its executor. An attempt
// without ranks ends here.
void EndTrial(const Trial& trial, TrialState state, const std::string& reason, Facts& facts);

// Kills every trial of the sweep that has not ended, except `except`. REQUIRES: `facts` does not
// yet end an attempt without ranks of these trials.
void KillTrials(const Sweep& sweep, const std::string& reason, const Trial* except, Facts& facts);

// The sweep starts no more trials by itself. Running trials continue; waiting ones end as
// `waiting`.
void BeginStopping(const Sweep& sweep, SweepState outcome, const std::string& reason,
                   TrialState waiting, Facts& facts);

// Running trials of the sweep get this verdict at their next report. A stop does not affect trials
// that a user requested.
void YieldTrials(const Sweep& sweep, const Verdict& verdict, Facts& facts);

// Deletes a sweep that has ended. `requester`: see SweepDeleted.
void DeleteEnded(const State& state, SweepId sweep, const std::string& requester, Facts& facts);

// The trial waits for another attempt, or ends if its sweep is stopping. `avoided`: see
// TrialRequeued.
void Requeue(const Sweep& sweep, const Trial& trial, const std::string& reason, Time not_before,
             Facts& facts, const std::string& avoided = "");

// Must be called when the trial's gang has left. Ends the trial if it is pending or paused and its
// sweep starts no more trials.
void EndIfWaiting(const Sweep& sweep, const Trial& trial, Facts& facts);

// Ends the trial as failed. The sweep fails as well if too many trials have failed, or if nothing
// was ever reported and `broken` is not empty: it says why the program cannot work.
void FailTrial(const Sweep& sweep, const Trial& trial, const std::string& reason,
               const std::string& broken, Facts& facts);

}  // namespace attune
