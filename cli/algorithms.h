#pragma once

#include "core/algorithms/algorithms.h"

namespace attune::cli {

// The searchers and schedulers that come with Attune. They live as long as the process.
const Algorithms& AllAlgorithms();

}  // namespace attune::cli
