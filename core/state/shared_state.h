#pragma once

#include "core/log/event_values.h"
#include "core/state/state.h"

// The part of the state that the events of every sweep change. A deleted sweep's events are erased
// from the log; SweepDeleted says what they had left there, so that a log with them and one without
// them lead to the same state.
namespace attune {

// What of it stays when the sweep, which has ended, is deleted.
SharedState SharedOf(const State& state, SweepId deleted);

// Makes it what it was when the sweep was deleted. Changes nothing more of a state that has seen
// all of the sweep's events.
void RestoreShared(State& state, const SharedState& shared, SweepId deleted);

}  // namespace attune
