#pragma once

#include "cli/commands/command.h"

namespace attune::cli {

// Adds the commands `note` and `tag` to those of sweeps or of trials.
void AddSweepAnnotations(CLI::App& noun, Action& chosen);
void AddTrialAnnotations(CLI::App& noun, Action& chosen);

}  // namespace attune::cli
