#pragma once

#include "core/log/event_values.h"
#include "core/state/state.h"

// The part of the state that the events of every sweep change. The events of a deleted sweep are
// erased from the log. Therefore SweepDeleted records this part, so that the log leads to the same
// state with and without these events.
namespace attune {

// This part of the state, as it must be after the ended sweep is deleted.
SharedState SharedStateWithout(const State& state, SweepId deleted);

// Sets this part to the recorded value. Changes nothing if the state has seen all events of the
// sweep.
void RestoreShared(State& state, const SharedState& shared, SweepId deleted);

}  // namespace attune
