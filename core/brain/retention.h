#pragma once

#include "core/brain/state.h"

namespace attune {

// Why a checkpoint is still there.
enum class Keep {
  kNot,      // nothing needs it
  kForNow,   // something refers to it that may cease to
  kForGood,  // the sweep's policy or a person keeps it
};

// Whether something of the sweep needs the trial's checkpoint, be the trial in the brain or not: it
// is the sweep's best, or another trial goes on from it.
bool Referred(const Sweep& sweep, TrialNumber trial, const KeptCheckpoint& checkpoint);

// What keeps the trial's checkpoint at this index.
Keep KeptFor(const Sweep& sweep, const Trial& trial, size_t index);

// The first of the trial's checkpoints that nothing keeps; null when all of them stay.
const KeptCheckpoint* Surplus(const Sweep& sweep, const Trial& trial);

// Whether nothing can happen to the trial any more unless a person opens it again.
bool Settled(const Sweep& sweep, const Trial& trial);

}  // namespace attune
