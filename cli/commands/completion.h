#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/exit_code.h"
#include "cli/run.h"

namespace attune::cli {

// Handles `__complete` and `__describe`, which completion scripts and the build use. nullopt for
// other commands.
std::optional<ExitCode> AnswerScript(const CLI::App& app, const std::vector<std::string>& args,
                                     Console& console);

}  // namespace attune::cli
