#pragma once

#include "core/log/sweep_spec.h"
#include "sweepfile/reader.h"

namespace attune::sweepfile {

// The limits of trials that need more than a number: stop.plateau and stop.threshold, into
// spec.stop. REQUIRES: spec has its objectives; `stop` was read by StopKeys.
void ReadTrialStoppers(const Fields& stop, SweepSpec& spec, Faults& faults);

}  // namespace attune::sweepfile
