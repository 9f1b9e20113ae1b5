#pragma once

#include "core/brain/agenda.h"
#include "core/brain/consequences.h"

namespace attune {

// How many workers the gang of a trial of the sweep has at most where it starts; null: of the next
// new one. With another policy than kOldest a new trial begins with no more than an even share: of
// what the sweep's gangs hold and what is free, among the trials that can run together now, those
// to come included. With kEven none has more later, either.
int MostWorkers(const State& state, const Sweep& sweep, const Trial* trial, const Hosts& hosts);

// Adds the fact that asks a gang to leave at its next report, with a checkpoint, and to go on from
// there with more workers: one that has fewer than GangSpec::workers, for which there is room.
//
// None grows while a gang waits that would use the room, or take what the other gives back: of a
// sweep of no lower priority, its own included, also one that waits out a backoff. Nor before the
// attempt has saved a checkpoint, without which the trial would begin anew, and is grow_after old.
// What has been asked is taken back where that changes before the gang has left. One gang grows at
// a time, since the room was found for one: of the highest priority first, then of the oldest
// sweep, then by GangSpec::grow, then the oldest trial.
//
// REQUIRES: nothing can start now (core/brain/contention.h); the hosts are as of this moment.
void GrowGang(const State& state, const Reachable& reachable, Time now, Agenda& agenda,
              Hosts& hosts, Facts& facts);

}  // namespace attune
