#pragma once

#include <string>
#include <vector>

#include "cli/exit_code.h"
#include "cli/host.h"
#include "cli/interrupt.h"
#include "cli/output.h"

namespace attune::cli {

// What a verb works with beside its arguments.
struct Console {
  Output& out;  // data
  Output& err;  // progress and errors
  Interrupt& interrupt;
  const Host& host;
};

// Runs `attune ARGS…`; the program's name is not among them.
ExitCode Run(const std::vector<std::string>& args, Console& console);

}  // namespace attune::cli
