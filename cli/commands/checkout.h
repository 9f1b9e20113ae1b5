#pragma once

#include "cli/commands/command.h"

namespace attune::cli {

// Adds `attune trial checkout`.
void AddCheckoutCommand(CLI::App& noun, Action& chosen);

}  // namespace attune::cli
