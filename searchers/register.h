#pragma once

#include "core/algorithms/algorithms.h"

namespace attune::searchers {

// Adds every searcher of this folder.
void RegisterSearchers(Algorithms& algorithms);

}  // namespace attune::searchers
