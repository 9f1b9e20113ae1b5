#pragma once

#include "base/result.h"
#include "core/brain/consequences.h"
#include "core/log/command.h"
#include "core/state/state.h"

// Executors that a user takes out of service: nothing more starts there until the user resumes
// them, even if their processes restart. Running trials finish, or are asked to leave.
namespace attune {

Status DecideDrain(const State& state, const DrainExecutor& command, Time now, Facts& facts);
Status DecideResume(const State& state, const ResumeExecutor& command, Facts& facts);

// The executor is about to end, so its trials are asked to leave.
void DecideLeave(const State& state, const LeaveExecutor& command, Facts& facts);

// Must be called when a paused sweep is resumed. If the trial runs on an executor that is drained
// with `now`, it is asked to leave again.
void LeaveIfDrained(const State& state, const Trial& trial, Time now, Facts& facts);

}  // namespace attune
