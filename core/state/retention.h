#pragma once

#include <string>

#include "core/state/state.h"

namespace attune {

// Whether the report of this trial, attempt and step is one of the sweep's best.
bool IsBest(const Sweep& sweep, const CheckpointId& id);

// Why the checkpoint cannot be dropped, for a message; empty if only the sweep's policy keeps it,
// or nothing does. `live` is the trial; null if it is no longer in the state.
std::string NeededBy(const Sweep& sweep, const Trial* live, TrialNumber trial,
                     const KeptCheckpoint& checkpoint);

// The checkpoint from its trial or, if that is no longer in the state, from a clone of it; null if
// it is unknown.
const KeptCheckpoint* FindKept(const Sweep& sweep, const CheckpointId& checkpoint);

// The first checkpoint of the trial that nothing keeps; null if all of them stay.
const KeptCheckpoint* FindSurplus(const Sweep& sweep, const Trial& trial);

// Whether at most the scheduler keeps the checkpoint. REQUIRES: sweep.Find(checkpoint).
bool IsOnlyRetained(const Sweep& sweep, const CheckpointId& checkpoint);

// Pins or unpins a checkpoint for a user, or removes it from its trial.
void SetPinned(Sweep& sweep, const CheckpointId& checkpoint, bool pinned);
void Remove(Sweep& sweep, const CheckpointId& checkpoint);

// Notes the object store that has a copy of the checkpoint, also for the clones of it. `only`: the
// executor no longer has the files.
void SetStored(Sweep& sweep, const CheckpointId& checkpoint, const std::string& address, bool only);

// Must be called after a change of the trial's checkpoints or of the references to them. Removes
// the trial from the sweep if it is settled, and updates Sweep::surplus.
void Review(Sweep& sweep, TrialNumber trial);

// Must be called after the scheduler may have changed its set of retained checkpoints.
void ReviewRetained(Sweep& sweep);

// Whether the trial has ended and can change only if a user reopens it.
bool IsSettled(const Sweep& sweep, const Trial& trial);

}  // namespace attune
