#include "executor/gang/command_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace attune::gang {
namespace {

// Returns the argument for an entry of the configuration; empty: no argument.
using WriteArgument = std::string (*)(const NamedValue& entry);

std::string Option(const NamedValue& entry) {
  return "--" + entry.name + "=" + ToText(entry.value);
}

std::string Flag(const NamedValue& entry) {
  const bool* flag = std::get_if<bool>(&entry.value);
  if (flag == nullptr) return Option(entry);
  return *flag ? "--" + entry.name : "";
}

std::string Plain(const NamedValue& entry) { return entry.name + "=" + ToText(entry.value); }

constexpr std::array<std::pair<std::string_view, WriteArgument>, 3> kArguments{{
    {"${args}", Option},
    {"${args.flags}", Flag},
    {"${args.plain}", Plain},
}};

constexpr std::string_view kParam = "param.";

template <typename Number>
std::string ShortestDecimal(Number number) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  return std::string(text.data(), end);
}

Result<std::string> ExpandPlaceholder(std::string_view placeholder,
                                      const std::vector<NamedValue>& config,
                                      const std::filesystem::path& config_file) {
  if (placeholder == "config") return config_file.string();
  if (placeholder == "args" || placeholder.starts_with("args.")) {
    return Invalid("${" + std::string(placeholder) +
                   "} in the command must be a separate argument");
  }
  if (placeholder.starts_with(kParam)) {
    const std::string_view name = placeholder.substr(kParam.size());
    const auto found = std::ranges::find(config, name, &NamedValue::name);
    if (found != config.end()) return ToText(found->value);
    return Invalid("${" + std::string(placeholder) + "} in the command: there is no parameter '" +
                   std::string(name) + "'");
  }
  return Invalid("${" + std::string(placeholder) +
                 "} in the command is unknown; use ${args}, ${args.flags}, ${args.plain}, "
                 "${config} or ${param.NAME}, or $${ for a literal ${");
}

Result<std::string> ExpandArgument(std::string_view argument, const std::vector<NamedValue>& config,
                                   const std::filesystem::path& config_file) {
  std::string expanded;
  while (!argument.empty()) {
    const size_t open = argument.find("${");
    if (open == std::string_view::npos) break;
    if (open > 0 && argument[open - 1] == '$') {
      expanded.append(argument.substr(0, open - 1)).append("${");
      argument.remove_prefix(open + 2);
      continue;
    }
    const size_t close = argument.find('}', open);
    if (close == std::string_view::npos) {
      return Invalid("'" + std::string(argument.substr(open)) +
                     "' in the command lacks its closing }");
    }
    Result<std::string> value =
        ExpandPlaceholder(argument.substr(open + 2, close - open - 2), config, config_file);
    if (!value.ok()) return value;
    expanded.append(argument.substr(0, open)).append(value.value());
    argument.remove_prefix(close + 1);
  }
  return expanded.append(argument);
}

}  // namespace

std::string ToText(const Value& value) {
  struct Printer {
    std::string operator()(double number) const { return ShortestDecimal(number); }
    std::string operator()(int64_t number) const { return ShortestDecimal(number); }
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(const std::string& text) const { return text; }
  };
  return std::visit(Printer{}, value);
}

bool UsesPlaceholders(const std::vector<std::string>& command) {
  return std::ranges::any_of(command, [](const std::string& argument) {
    return argument.find("${") != std::string::npos;
  });
}

bool UsesConfigFile(const std::vector<std::string>& command) {
  return std::ranges::any_of(command, [](const std::string& argument) {
    return argument.find("${config}") != std::string::npos;
  });
}

Result<std::vector<std::string>> ExpandCommand(const std::vector<std::string>& command,
                                               const std::vector<NamedValue>& config,
                                               const std::filesystem::path& config_file) {
  if (command.empty()) return Invalid("the command is empty");
  std::vector<std::string> argv;
  for (const std::string& argument : command) {
    const auto all =
        std::ranges::find(kArguments, argument, &decltype(kArguments)::value_type::first);
    if (all != kArguments.end()) {
      for (const NamedValue& entry : config) {
        std::string written = all->second(entry);
        if (!written.empty()) argv.push_back(std::move(written));
      }
      continue;
    }
    Result<std::string> expanded = ExpandArgument(argument, config, config_file);
    if (!expanded.ok()) return expanded.error();
    argv.push_back(std::move(expanded.value()));
  }
  if (argv.empty()) return Invalid("the command names no program");
  return argv;
}

}  // namespace attune::gang
