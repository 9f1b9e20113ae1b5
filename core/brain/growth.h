#pragma once

#include "core/brain/agenda.h"
#include "core/brain/consequences.h"

namespace attune {

// Adds the fact that asks a gang to leave at its next report, with a checkpoint, and to go on from
// there with more workers: one that has fewer than GangSpec::workers, for which there is room.
//
// None grows while a gang waits that would use the room, or take what the other gives back: of a
// sweep of no lower priority, its own included, also one that waits out a backoff. Nor before the
// attempt has saved a checkpoint, without which the trial would begin anew, and is grow_after old.
// What has been asked is taken back where that changes before the gang has left. One gang grows at
// a time, since the room was found for one: of the highest priority first, then of the oldest
// sweep, then the oldest trial.
//
// REQUIRES: nothing can start now (core/brain/contention.h); the hosts are as of this moment.
void GrowGang(const State& state, Time now, Agenda& agenda, Hosts& hosts, Facts& facts);

}  // namespace attune
