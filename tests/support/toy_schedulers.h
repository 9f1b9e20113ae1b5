#pragma once

#include "core/algorithms/algorithms.h"

namespace attune::testing {

// Adds simple schedulers that use one answer of a scheduler each: "bracket" promotes the best of
// three trials, "stuck" waits forever, "donors" promotes trials from another trial's checkpoint.
void AddToySchedulers(Algorithms& algorithms);

}  // namespace attune::testing
