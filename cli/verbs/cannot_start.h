#pragma once

#include <string>

#include "cli/client/api.h"
#include "cli/exit_code.h"
#include "cli/run.h"

namespace attune::cli {

// Ends a verb whose watch ended as kCannotStart: says why the sweep's next gang can never start,
// then `remedy`. A sweep of which no trial has run is killed, so that no later run finds it
// unfinished; any other can go on with a larger executor.
ExitCode EndUnstartable(Console& console, Api& api, const std::string& sweep,
                        const std::string& remedy);

}  // namespace attune::cli
