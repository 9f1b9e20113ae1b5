#pragma once

#include "core/algorithms/algorithms.h"

namespace attune::testing {

// Returns toy algorithms. Searchers: "counting" proposes 1000 configurations, "three" proposes
// three, "pairs" two at a time, "idle" none; proposals of "thinker" and "thinking_pairs" take time.
//
// Schedulers: "toy" stops or pauses trials at every second step, "cloner" clones trial 0. In
// addition, the schedulers of toy_schedulers.h.
Algorithms ToyAlgorithms();

// Returns a sweep of four trials with one worker, one CPU and six steps.
SweepSpec ToySpec();

}  // namespace attune::testing
