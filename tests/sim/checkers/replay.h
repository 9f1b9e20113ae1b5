#pragma once

#include "tests/sim/variant.h"
#include "tests/sim/world.h"

namespace attune::sim {

// What the log of a world that has come to its end must be worth: replayed, wholly or from a
// snapshot, it gives the state that the server has; the same commands give the same events in a
// brain that never crashed; and the auditor derives every decision again.
void CheckReplay(const World& world, const server::EventStore& store, Variant variant,
                 Findings& findings);

}  // namespace attune::sim
