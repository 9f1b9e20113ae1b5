#pragma once

#include "core/base/ids.h"
#include "core/space/value.h"

namespace attune::sim {

// The metric that some sweeps use as their unit of time.
inline constexpr char kSamples[] = "samples";

// The metrics of a report: the loss; an independent cost between 0 and 1, for sweeps with several
// objectives or with constraints; and the samples, which are between `step` and `step` + 1. In some
// reports the cost is not finite.
Metrics MetricsAt(const TrialId& trial, Step step, double loss);

// The step of the next report after `step`. If the sweep counts samples (`measured`), steps may be
// skipped.
Step NextStep(const TrialId& trial, Step step, bool measured);

}  // namespace attune::sim
