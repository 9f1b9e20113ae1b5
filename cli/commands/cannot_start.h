#pragma once

#include <string>

#include "cli/client/api.h"
#include "cli/exit_code.h"
#include "cli/run.h"

namespace attune::cli {

// Ends a command whose watch returned kCannotStart. Prints why the sweep's next gang can never
// start, and then `remedy`. Kills the sweep if none of its trials has run, so that no later run
// resumes it. Other sweeps can continue with a larger executor.
ExitCode EndUnstartable(Console& console, Api& api, const std::string& sweep,
                        const std::string& remedy);

}  // namespace attune::cli
