#pragma once

#include "core/brain/agenda.h"
#include "core/brain/consequences.h"

// An executor whose gangs keep failing is quarantined: it gets no gang for a while, so that a
// broken host does not fail one trial after another. A program that fails everywhere quarantines no
// executor: gangs must do well on another executor meanwhile.
namespace attune {

// An executor is quarantined after kFailuresInARow failures in a row, of kFailedTrials trials. If
// nothing has gone well since its last quarantine, one failure is enough.
inline constexpr size_t kFailuresInARow = 4;
inline constexpr size_t kFailedTrials = 3;

// The durations of the first quarantine and of the longest one. Until something goes well, each is
// twice as long as the one before.
inline constexpr Seconds kQuarantine{60};
inline constexpr Seconds kQuarantineMax{3600};

// Quarantines an executor if it keeps failing. An attempt of the trial has just failed because of
// its ranks on this executor; no event about that is applied yet.
void QuarantineIfItKeepsFailing(const State& state, const TrialId& trial,
                                const std::string& executor, Time now, Facts& facts);

// Ends the quarantine that ends first, if its time is over or no executor takes gangs.
void EndQuarantine(const State& state, Time now, const Agenda& agenda, Facts& facts);

}  // namespace attune
