#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/exit_code.h"
#include "cli/run.h"

namespace attune::cli {

// Answers the words that scripts and the build ask with, __complete and __describe, which no person
// types; nothing if `args` are others.
std::optional<ExitCode> AnswerScript(const CLI::App& app, const std::vector<std::string>& args,
                                     Console& console);

}  // namespace attune::cli
