#pragma once

#include "core/brain/agenda.h"
#include "core/brain/consequences.h"

// An executor whose gangs keep failing is quarantined: it gets no gang for a while, so that a
// broken host does not fail one trial after another. Each quarantine is longer than the last one. A
// program that fails everywhere quarantines no executor, because gangs must do well on another
// executor.
namespace attune {

// An executor is quarantined after kFailuresInARow failures in a row, of kFailedTrials trials. If
// nothing has gone well since its last quarantine, one failure is enough.
inline constexpr size_t kFailuresInARow = 4;
inline constexpr size_t kFailedTrials = 3;

// The duration of the first quarantine, and the longest one. Each one is twice as long as the last.
inline constexpr Seconds kQuarantine{60};
inline constexpr Seconds kQuarantineMax{3600};

// Quarantines an executor if it keeps failing. An attempt of the trial has just failed because of
// its ranks on this executor; no event about that is applied yet.
void QuarantineIfItKeepsFailing(const State& state, const TrialId& trial,
                                const std::string& executor, Time now, Facts& facts);

// Ends a quarantine whose time is over. If no executor takes gangs, ends the oldest one at once.
void EndQuarantine(const State& state, Time now, const Agenda& agenda, Facts& facts);

}  // namespace attune
