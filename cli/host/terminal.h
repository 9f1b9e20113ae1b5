#pragma once

#include <string>

#include "base/result.h"
#include "cli/interrupt.h"
#include "cli/output.h"

namespace attune::cli {

// What the process's descriptor is good for: redrawing and colours on a terminal that can, unless
// NO_COLOR or TERM=dumb say otherwise.
Output::Traits TraitsOf(int descriptor);

// Reads the value of a secret; see Host::read_secret. kInvalid if the terminal cannot hide it.
Result<std::string> ReadSecret(const std::string& prompt, Interrupt& interrupt);

}  // namespace attune::cli
