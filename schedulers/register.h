#pragma once

#include "core/algorithms/algorithms.h"

namespace attune::schedulers {

// Adds every scheduler of this folder.
void RegisterSchedulers(Algorithms& algorithms);

}  // namespace attune::schedulers
