#pragma once

#include "core/brain/agenda.h"
#include "core/brain/consequences.h"

namespace attune {

// The maximum number of workers with which a trial starts; null: the next new trial. With kBest and
// kEven, a new trial starts with at most an even share. The share divides the workers that the
// sweep has or could have now among the trials that can run together, future trials included. With
// kEven, this limit also applies later.
int MostWorkers(const State& state, const Sweep& sweep, const Trial* trial, const Hosts& hosts,
                Time now);

// Adds a fact that lets a gang grow: it saves a checkpoint at its next report, leaves, and
// continues with more workers. The gang has fewer than GangSpec::workers, and more workers fit now.
//
// - A gang does not grow while another gang waits that could use the resources. That gang belongs
// to a
//   sweep with the same or a higher priority, perhaps the same sweep. It may also wait for a
//   backoff.
// - The attempt must be grow_after old. It must have saved a checkpoint, because the trial would
//   otherwise begin from the start.
// - If the conditions change before the gang has left, the request is withdrawn.
// - Only one gang grows at a time, because the free resources are counted for one. The order is:
// the
//   highest priority, the oldest sweep, GangSpec::grow, the oldest trial.
//
// REQUIRES: nothing can start now (core/brain/contention.h), and `hosts` is up to date.
void GrowGang(const State& state, const Reachable& reachable, Time now, Agenda& agenda,
              Hosts& hosts, Facts& facts);

}  // namespace attune
