#pragma once

#include "base/result.h"
#include "core/brain/consequences.h"
#include "core/log/command.h"
#include "core/state/state.h"

// Executors that a person takes out of service for a while: nothing more starts there, whichever
// process has the name, until they are resumed. What runs there finishes, or is asked to leave.
namespace attune {

Status DecideDrain(const State& state, const DrainExecutor& command, Facts& facts);
Status DecideResume(const State& state, const ResumeExecutor& command, Facts& facts);

// Whatever runs on an executor that is about to end is asked to leave it.
void DecideLeave(const State& state, const LeaveExecutor& command, Facts& facts);

// What was to leave an executor before its sweep was paused still is, once that is resumed.
void LeaveDrained(const State& state, const Trial& trial, Facts& facts);

}  // namespace attune
