#pragma once

#include <string>
#include <vector>

#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/text/style.h"

namespace attune::cli {

// What `attune run` says at the end. `sweep` is a SWEEP, `trials` an array of TRIALs.

// {"sweep", "state", "best": {"trial", "config", "metrics", "checkpoint"} or null, "trials": number
// by state, "wall_seconds"}.
Json OutcomeJson(const Json& sweep, double wall_seconds);

// The best configuration, its metrics and checkpoint, and which trials were stopped early and why.
std::vector<std::string> OutcomeLines(const Json& sweep, const Json& trials, double wall_seconds,
                                      const Style& style, int width);

// Where the checkpoint of a BEST is, and of which step, where it is not the best one's; empty: none
// is kept.
std::string CheckpointOf(const Json& best);

// kSweepFailed when the sweep failed or was killed.
ExitCode ExitCodeOfSweep(const Json& sweep);

}  // namespace attune::cli
