#pragma once

#include <string>
#include <vector>

#include "core/algorithms/algorithms.h"
#include "tests/sim/variant.h"

namespace attune::sim {

// The real searchers and schedulers, and two toys that use what those may not: "halving" pauses at
// every rung and promotes; "exploiting" clones better trials' checkpoints.
const Algorithms& TestAlgorithms();

// The same; in kRecordsTwice, asha records every report for two trials.
const Algorithms& AlgorithmsFor(Variant variant);

const std::vector<std::string>& SearcherNames();
const std::vector<std::string>& SchedulerNames();

// With every option at its fallback. REQUIRES: the name is known.
AlgorithmSpec SpecOf(const std::string& name);

}  // namespace attune::sim
