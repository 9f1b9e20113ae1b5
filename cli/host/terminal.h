#pragma once

#include "cli/output.h"

namespace attune::cli {

// What the process's descriptor is good for: redrawing and colours on a terminal that can, unless
// NO_COLOR or TERM=dumb say otherwise.
Output::Traits TraitsOf(int descriptor);

}  // namespace attune::cli
