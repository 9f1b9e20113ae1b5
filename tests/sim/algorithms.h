#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/algorithms/algorithms.h"
#include "tests/sim/variant.h"

namespace attune::sim {

// The searcher that thinks.
inline constexpr std::string_view kPondering = "pondering";

// The real searchers and schedulers, and toys that use what those may not: "pondering" thinks;
// "halving" pauses at every rung and promotes; "exploiting" clones better trials' checkpoints.
const Algorithms& TestAlgorithms();

// The same; in kRecordsTwice, asha records every report for two trials; in kForgetsPaused, all
// promote nobody while something runs.
const Algorithms& AlgorithmsFor(Variant variant);

const std::vector<std::string>& SearcherNames();  // all but kPondering
const std::vector<std::string>& SchedulerNames();

// With every option at its fallback. REQUIRES: the name is known.
AlgorithmSpec SpecOf(const std::string& name);

}  // namespace attune::sim
