#pragma once

#include "core/algorithms/algorithms.h"

namespace attune::testing {

// Schedulers that use what a scheduler may answer, each in the plainest way: "bracket" promotes the
// best of three, "stuck" waits for ever, "donors" lets trials go on from another's checkpoint.
void AddToySchedulers(Algorithms& algorithms);

}  // namespace attune::testing
