#pragma once

#include "core/base/ids.h"
#include "core/space/value.h"

namespace attune::sim {

// That some sweeps measure time in.
inline constexpr char kSamples[] = "samples";

// What a gang reports at a step: its loss, and a cost between 0 and 1 that has nothing to do with
// it, for sweeps with several objectives or with constraints. At some steps it is not finite. And
// its samples, which are the step and a part of one.
Metrics MetricsAt(const TrialId& trial, Step step, double loss);

// The step of the report after that of `step`, `measured` in samples or counted.
Step NextStep(const TrialId& trial, Step step, bool measured);

}  // namespace attune::sim
