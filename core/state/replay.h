#pragma once

#include "base/result.h"
#include "core/state/state.h"

namespace attune {

// Whether this program can replay the event. It may lack the algorithm of a sweep, or the sweep may
// lack an option that has become required. The error names it. Apply REQUIRES that this succeeds.
Status CanReplay(const Algorithms& known, const Event& event);

}  // namespace attune
