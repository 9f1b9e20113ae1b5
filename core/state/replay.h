#pragma once

#include "base/result.h"
#include "core/state/state.h"

namespace attune {

// Whether this program can replay the event: it may lack an algorithm, or the sweep that is created
// or edited an option that is required since. The error names it. Apply takes it for granted.
Status CanReplay(const Algorithms& known, const Event& event);

}  // namespace attune
