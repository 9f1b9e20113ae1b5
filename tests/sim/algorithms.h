#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/algorithms/algorithms.h"
#include "tests/sim/variant.h"

namespace attune::sim {

// A toy searcher whose proposals take time.
inline constexpr std::string_view kSlowSearcher = "pondering";

// The real searchers and schedulers, and three toys that use features which the real ones may not
// use: "pondering" takes time for each proposal, "halving" pauses trials at every rung and promotes
// some, "exploiting" clones the checkpoints of better trials.
const Algorithms& TestAlgorithms();

// The same algorithms with the faults of a variant. In kRecordsTwice, asha records every report for
// two trials. In kForgetsPaused, no scheduler promotes a trial while another one runs.
const Algorithms& AlgorithmsFor(Variant variant);

const std::vector<std::string>& SearcherNames();  // all except kSlowSearcher
const std::vector<std::string>& SchedulerNames();

// The algorithm of this name, with the default of each option. REQUIRES: the name is known.
AlgorithmSpec SpecOf(const std::string& name);

}  // namespace attune::sim
