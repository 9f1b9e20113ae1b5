#pragma once

#include "core/brain/consequences.h"
#include "core/brain/decide.h"

// Which sweep's gang goes where, when there is not room for all.
//
// Sweeps are served by priority, then the one with the smallest dominant share: the largest of its
// shares of all CPUs, GPUs and memory (Ghodsi et al., "Dominant resource fairness", NSDI 2011).
// A gang that does not fit lets smaller ones of later sweeps pass it (backfill), but not for ever:
// before the first of them does, one executor's slots are reserved for it. From then on, others
// start there only within what the gang leaves over, and it starts once the earlier ones have
// ended. An executor that is away keeps the reservation until it is lost.
namespace attune {

// The facts that start the next gang, reserve slots for one, or release them. None: nothing can
// start now.
void StartGang(const State& state, const Reachable& reachable, Time now, Facts& facts);

}  // namespace attune
