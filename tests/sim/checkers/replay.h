#pragma once

#include "tests/sim/variant.h"
#include "tests/sim/world.h"

namespace attune::sim {

// Checks the log of a finished world:
// - a replay, from the start or from a snapshot, gives the state of the server;
// - a brain that never crashed makes the same events from the same commands;
// - the auditor derives every decision again.
void CheckReplay(const World& world, const server::EventStore& store, Variant variant,
                 Findings& findings);

}  // namespace attune::sim
