#pragma once

#include "cli/host.h"

namespace attune::cli {

// The server and the executor of this binary.
Host LocalHost();

}  // namespace attune::cli
