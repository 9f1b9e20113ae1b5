#pragma once

#include <string>
#include <vector>

#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/text/style.h"
#include "rest/contract.h"

namespace attune::cli {

// {"sweep", "state", "best": {"trial", "config", "metrics", "checkpoint"} or null, "trials": number
// by state, "wall_seconds"}: the output of `attune run -o json`.
Json OutcomeJson(const rest::Sweep& sweep, double wall_seconds);

// The best configuration, its metrics and checkpoint, and which trials were stopped early and why.
std::vector<std::string> OutcomeLines(const rest::Sweep& sweep,
                                      const std::vector<rest::Trial>& trials, double wall_seconds,
                                      const Style& style, int width);

// The path of the checkpoint, and its step if that is not the step of the report. Empty if
// no checkpoint is kept.
std::string CheckpointOf(const rest::Best& best);

// kSweepFailed if the sweep failed or was killed.
ExitCode ExitCodeOfSweep(const rest::Sweep& sweep);

}  // namespace attune::cli
