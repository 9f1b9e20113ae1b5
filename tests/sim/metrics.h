#pragma once

#include "core/base/ids.h"
#include "core/space/value.h"

namespace attune::sim {

// What a gang reports at a step: its loss, and a cost between 0 and 1 that has nothing to do with
// it, for sweeps with several objectives or with constraints. At some steps it is not finite.
Metrics MetricsAt(const TrialId& trial, Step step, double loss);

}  // namespace attune::sim
