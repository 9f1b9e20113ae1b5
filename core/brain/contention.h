#pragma once

#include "core/brain/agenda.h"
#include "core/brain/consequences.h"

// Which sweep's gang goes where, when there is not room for all.
//
// Sweeps are served by priority, then those of the owner with the smallest dominant share, of these
// the one with the smallest: the largest of its shares of all CPUs, GPUs and memory (Ghodsi et al.,
// "Dominant resource fairness", NSDI 2011). First the trial is chosen, then it is placed. A trial
// goes where its checkpoint lies (core/state/origin.h), or else elsewhere, where it is then
// fetched; while nobody is there to send it the trial waits, and its sweep's next ones pass it
// meanwhile.
//
// A gang that does not fit lets smaller ones of later sweeps pass it (backfill), but not for ever:
// before the first of them does, slots are reserved for it, on the executor that is nearest to
// having room, or on as many as it needs of those that it can span. From then on, others start
// there only within what the gang leaves over, and it starts once the earlier ones have ended. An
// executor that is away keeps the reservation until it is lost.
namespace attune {

// The facts that start the next gang, reserve slots for one, or release them. None: nothing can
// start now.
void StartGang(const State& state, const Reachable& reachable, Time now, Agenda& agenda,
               Facts& facts);

// Whether slots are reserved for another sweep, which they are kept for also before this one.
bool Yields(const State& state, const Sweep& sweep);

// What any gang of the sweep needs.
GangRequest RequestFor(const State& state, const Sweep& sweep);

// What the sweep's next gang needs: that of a trial that waits, or of a new one (null).
GangRequest RequestOf(const State& state, const Sweep& sweep, const Trial* waiting,
                      const Reachable& reachable);

}  // namespace attune
