#pragma once

#include <string>

#include "core/brain/agenda.h"
#include "core/brain/consequences.h"

// Decides which sweep's gang starts next and where, when not all of them fit.
//
// The order of sweeps is: the highest priority, then the owner with the smallest dominant share,
// then the sweep with the smallest dominant share. A dominant share is the largest of the shares of
// all CPUs, GPUs and memory (Ghodsi et al., "Dominant resource fairness", NSDI 2011). The trial is
// chosen first and placed second. It is placed where its checkpoint is (core/state/origin.h), or
// elsewhere, where the checkpoint is fetched. If no executor can send the checkpoint, the trial
// waits, and the next trials of its sweep may start before it.
//
// If a gang does not fit, smaller gangs of later sweeps may start before it (backfill). Before the
// first of them starts, slots are reserved for the gang: on the executor where it is closest to
// fitting, or on several that it can span. From then on, other gangs use only what it leaves free
// there, and it starts once the earlier gangs have ended. The reservation stays on a disconnected
// executor until that is lost.
namespace attune {

// Adds the facts that start the next gang, reserve slots, or release a reservation. Adds none if
// nothing can start now.
void StartGang(const State& state, const Reachable& reachable, Time now, Agenda& agenda,
               Facts& facts);

// Whether this sweep must not use the reserved slots of another sweep.
bool MustSpareReservation(const State& state, const Sweep& sweep);

// The requirements that all gangs of the sweep share, if they start now.
GangRequest RequestFor(const State& state, const Sweep& sweep, Time now);

// The requirements of the sweep's next gang: for a waiting trial, or for a new one (null).
GangRequest RequestForNext(const State& state, const Sweep& sweep, const Trial* waiting,
                           const Reachable& reachable, Time now);

// Why there is no room for the sweep's next gang: for a waiting trial, or for a new one (null).
// Empty if it fits now.
std::string DescribeShortage(const State& state, const Sweep& sweep, const Trial* waiting,
                             const Reachable& reachable, Time now);

// How many gangs the sweep could start one after the other if all of them fitted, at most
// kDemandGangsMax.
int GangsToStart(const Sweep& sweep, Time now);

}  // namespace attune
