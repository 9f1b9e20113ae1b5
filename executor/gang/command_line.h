#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "executor/gang/spec.h"
#include "executor/gang/words.h"

namespace attune::gang {

// A value as text that reads back as the same value: shortest round-trip decimals, `true`, `false`.
std::string ToText(const Value& value);

// True if the command holds placeholders, so that it may differ from trial to trial.
bool UsesPlaceholders(const std::vector<std::string>& command);

// True if the command mentions ${config}, so that a file with the configuration is wanted.
bool UsesConfigFile(const std::vector<std::string>& command);

// Replaces the placeholders of a sweep file's command.
//
//   ${args}        as a whole argument: one `--name=value` for each configuration entry
//   ${args.flags}  the same, but `--name` for true and nothing for false
//   ${args.plain}  the same, without the hyphens
//   ${config}      `config_file`
//   ${param.NAME}  the value of NAME
//   $${            a literal ${
//
// Anything else in ${ } is an error that quotes it.
Result<std::vector<std::string>> ExpandCommand(const std::vector<std::string>& command,
                                               const std::vector<NamedValue>& config,
                                               const std::filesystem::path& config_file);

}  // namespace attune::gang
