#pragma once

#include "core/algorithms/algorithms.h"

namespace attune::testing {

// The searchers: "counting" proposes 1000 configurations, "three" three, "pairs" two at a time,
// "idle" none ever; "thinker" and "thinking_pairs" think.
//
// The schedulers: "toy" stops and pauses at every second step, "cloner" clones trial 0; the others
// are those of toy_schedulers.h.
Algorithms ToyAlgorithms();

// Four trials of one worker with one CPU, six steps each.
SweepSpec ToySpec();

}  // namespace attune::testing
