#pragma once

#include <string>

#include "base/result.h"
#include "cli/interrupt.h"
#include "cli/output.h"

namespace attune::cli {

// The traits of the descriptor: live with colours on a terminal, unless NO_COLOR or TERM=dumb is
// set.
Output::Traits TraitsOf(int descriptor);

// Reads the value of a secret; see Host::read_secret. kInvalid if the terminal cannot hide it.
Result<std::string> ReadSecret(const std::string& prompt, Interrupt& interrupt);

}  // namespace attune::cli
