#pragma once

#include <string>
#include <vector>

#include "cli/exit_code.h"
#include "cli/host.h"
#include "cli/interrupt.h"
#include "cli/output.h"

namespace attune::cli {

// The environment that a command runs in.
struct Console {
  Output& out;  // data
  Output& err;  // progress and errors
  Interrupt& interrupt;
  const Host& host;
};

// Runs `attune ARGS…`. `args` do not include the program's name.
ExitCode Run(const std::vector<std::string>& args, Console& console);

}  // namespace attune::cli
