#pragma once

#include "base/result.h"
#include "core/brain/consequences.h"
#include "core/log/command.h"
#include "core/state/state.h"

// Executors that join, get lost and report their health.
namespace attune {

// A new process replaces the earlier one with the same name, which is lost. Returns kInvalid like
// CheckJoin.
Status DecideJoin(const State& state, const JoinExecutor& command, Time now, Facts& facts);

void DecideLoss(const State& state, const LoseExecutor& command, Time now, Facts& facts);
void DecideHealth(const State& state, const ReportHealth& command, Facts& facts);

}  // namespace attune
