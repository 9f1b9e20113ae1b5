#pragma once

#include "core/brain/agenda.h"
#include "core/brain/consequences.h"

// Executors whose gangs keep failing get no more for a while, longer each time, so that a broken
// host does not eat up one trial after the other. A program that fails everywhere sets none aside:
// there has to be another executor on which gangs do well meanwhile.
namespace attune {

// So many failures in a row, of so many trials, set an executor aside; while nothing has gone well
// since it was set aside before, the first one does.
inline constexpr size_t kFailuresInARow = 4;
inline constexpr size_t kFailedTrials = 3;

// For how long at first, and at most; doubled each time.
inline constexpr Seconds kSetAside{60};
inline constexpr Seconds kSetAsideMax{3600};

// An attempt of the trial has failed by what its ranks on this executor did; no fact of that is
// applied yet.
void SetAsideIfItKeepsFailing(const State& state, const TrialId& trial, const std::string& executor,
                              Time now, Facts& facts);

// One that was set aside is tried again when its time is over, or when no executor is left that
// takes gangs.
void Readmit(const State& state, Time now, const Agenda& agenda, Facts& facts);

}  // namespace attune
