#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "executor/gang/channel_types.h"
#include "executor/gang/spec.h"

namespace attune::gang {

// Formats a value as text that parses to the same value: shortest round-trip decimals, `true`,
// `false`.
std::string ToText(const Value& value);

// Whether the command has placeholders, so that it may differ between trials.
bool UsesPlaceholders(const std::vector<std::string>& command);

// Whether the command uses ${config}, so that it needs a file with the configuration.
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
// Anything else in ${ } is an error, and the message quotes it.
Result<std::vector<std::string>> ExpandCommand(const std::vector<std::string>& command,
                                               const std::vector<NamedValue>& config,
                                               const std::filesystem::path& config_file);

}  // namespace attune::gang
