#pragma once

#include "base/result.h"
#include "core/brain/consequences.h"
#include "core/log/command.h"
#include "core/state/state.h"

// Executors that come, go, and say how they are.
namespace attune {

// Another process of a name takes the place of the one before, which is lost. kInvalid: as
// CheckJoin.
Status DecideJoin(const State& state, const JoinExecutor& command, Time now, Facts& facts);

void DecideLoss(const State& state, const LoseExecutor& command, Time now, Facts& facts);
void DecideHealth(const State& state, const SayHealth& command, Facts& facts);

}  // namespace attune
