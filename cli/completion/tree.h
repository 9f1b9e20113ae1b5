#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/json.h"

namespace attune::cli {

// Verbs of the program or of a noun that `--help` lists.
std::vector<const CLI::App*> VerbsOf(const CLI::App& app);
// Null if there is none of that name or alias.
const CLI::App* FindVerb(const CLI::App& app, const std::string& name);

// Options that `--help` lists, without those that are positional only.
std::vector<const CLI::Option*> OptionsOf(const CLI::App& app);
std::vector<const CLI::Option*> PositionalsOf(const CLI::App& app);

bool TakesValue(const CLI::Option& option);
bool TakesManyValues(const CLI::Option& option);

// Names with their dashes: -o, --output.
std::vector<std::string> NamesOf(const CLI::Option& option);

// The values that it takes, if they are few enough to be known: table, json.
std::vector<std::string> ValuesOf(const CLI::Option& option);

// What help calls its value: FILE, SECONDS; empty for a flag.
std::string ValueName(const CLI::Option& option);

// {"name", "about", "footer", "aliases", "positionals", "options", "verbs": […]}; a positional and
// an option are {"names", "about", "value", "values", "default", "environment", "required",
// "many"}.
Json DescribeTree(const CLI::App& app);

}  // namespace attune::cli
