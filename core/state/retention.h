#pragma once

#include <string>

#include "core/state/state.h"

namespace attune {

// Who or what would miss the checkpoint of a trial, in words, were it dropped; empty: nobody, or
// only the sweep's policy. `live`: the trial, null when it has left the brain.
std::string NeededBy(const Sweep& sweep, const Trial* live, TrialNumber trial,
                     const KeptCheckpoint& checkpoint);

// The checkpoint as its trial has it, or else as a clone of it has it, whose donor may have left the
// brain; null: nobody has it.
const KeptCheckpoint* FindKept(const Sweep& sweep, const CheckpointId& checkpoint);

// The first of the trial's checkpoints that nothing keeps; null when all of them stay.
const KeptCheckpoint* Surplus(const Sweep& sweep, const Trial& trial);

// Whether nothing but the scheduler keeps the checkpoint. REQUIRES: sweep.Find(checkpoint).
bool OnlyRetained(const Sweep& sweep, const CheckpointId& checkpoint);

// A person's pin is set or taken away, or the checkpoint is gone.
void SetPinned(Sweep& sweep, const CheckpointId& checkpoint, bool pinned);
void Remove(Sweep& sweep, const CheckpointId& checkpoint);

// Something about the trial's checkpoints has changed, or about what refers to them: it leaves the
// sweep when it is settled, and is in `surplus` when one of its checkpoints is to be dropped.
void Review(Sweep& sweep, TrialNumber trial);

// The scheduler may retain other checkpoints than before.
void ReviewRetained(Sweep& sweep);

// Whether nothing can happen to the trial any more unless a person opens it again.
bool Settled(const Sweep& sweep, const Trial& trial);

}  // namespace attune
