#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/json.h"

namespace attune::cli {

// The commands below `app` that `--help` lists.
std::vector<const CLI::App*> CommandsOf(const CLI::App& app);
// The command with this name or alias; null if there is none.
const CLI::App* FindCommand(const CLI::App& app, const std::string& name);

// Options that `--help` lists, except those that are only positional.
std::vector<const CLI::Option*> OptionsOf(const CLI::App& app);
std::vector<const CLI::Option*> PositionalsOf(const CLI::App& app);

bool TakesValue(const CLI::Option& option);
bool TakesManyValues(const CLI::Option& option);

// Names with dashes: -o, --output.
std::vector<std::string> NamesOf(const CLI::Option& option);

// The values of an option with a fixed set of values: table, json. Empty for other options.
std::vector<std::string> ValuesOf(const CLI::Option& option);

// The name of the value in the help: FILE, SECONDS. Empty for a flag.
std::string ValueName(const CLI::Option& option);

// {"name", "about", "footer", "aliases", "positionals", "options", "verbs": […]}; a positional and
// an option are {"names", "about", "value", "values", "default", "environment", "required",
// "many"}.
Json DescribeTree(const CLI::App& app);

}  // namespace attune::cli
