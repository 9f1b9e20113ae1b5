#include "sweepfile/program.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include "base/message_limits.h"
#include "core/log/secret_names.h"
#include "sweepfile/checks.h"
#include "sweepfile/space.h"

namespace attune::sweepfile {
namespace {

constexpr size_t kMaxVariables = 1000;
constexpr size_t kMaxCommitBytes = 64;  // of a SHA-256 in hexadecimal digits
constexpr std::string_view kParamPrefix = "param.";

std::string MakeAbsolute(const std::string& path, const std::string& directory) {
  // Without a trailing slash, so that the same folder always has the same text.
  std::string normal = (std::filesystem::path(directory) / path).lexically_normal().string();
  if (normal.size() > 1 && normal.back() == '/') normal.pop_back();
  return normal;
}

std::string WriteAbsolute(const ParseOptions& options) {
  return "write an absolute path" + (options.directory_from.empty()
                                         ? ""
                                         : ", or give the folder in " + options.directory_from);
}

bool IsAbsolute(const std::string& path) { return !path.empty() && path.front() == '/'; }

// Normalizes a path inside the code.
void MakeRelative(const Spot& spot, std::string& path, Faults& faults) {
  std::string normal = std::filesystem::path(path).lexically_normal().string();
  if (!normal.empty() && normal.back() == '/') normal.pop_back();
  if (normal == ".") normal.clear();
  if (IsAbsolute(normal) || normal == ".." || normal.starts_with("../"))
    return faults.AtValue(spot,
                          "is outside of the code; write a path that starts at the root of "
                          "the code");
  path = std::move(normal);
}

void CompleteCode(const Spot& spot, const ParseOptions& options, CodeSpec& code, Faults& faults) {
  const auto refuse = [&](std::string_view key, const std::string& message) {
    const MapEntry* entry = spot.node->Find(key);
    faults.AtValue(entry == nullptr ? spot : Child(spot, *entry), message);
  };
  if (!code.digest.empty() && !IsDigest(code.digest))
    refuse("digest", "is not a digest; write sha256: and 64 hexadecimal digits, or remove it");
  if (code.digest.empty() && options.snapshot) {
    code.digest = options.snapshot->digest;
    code.commit = options.snapshot->commit;
    code.dirty = options.snapshot->dirty;
  }
  if (code.commit.size() > kMaxCommitBytes ||
      code.commit.find_first_not_of("0123456789abcdef") != code.commit.npos)
    refuse("commit", "is not a git commit; write its hexadecimal digits, or remove it");
}

// Makes a path of a file that hosts read absolute, or relative to the root of the code.
void CompletePath(const Spot& spot, const ParseOptions& options, const Program& program,
                  std::string& path, Faults& faults) {
  if (path.empty()) return;
  if (IsAbsolute(path)) {
    path = MakeAbsolute(path, "/");
  } else if (program.code) {
    MakeRelative(spot, path, faults);
  } else if (!options.directory.empty()) {
    path = MakeAbsolute(path, options.directory);
  } else {
    faults.AtValue(spot, "is a relative path, but the sweep file's folder is not known; " +
                             WriteAbsolute(options));
  }
}

void CompletePackages(const Spot& spot, const ParseOptions& options, Program& program,
                      Faults& faults) {
  EnvironmentSpec& packages = *program.packages;
  if (!packages.container.empty() && !packages.python.empty())
    return faults.AtValue(spot, "has both python and container; remove one of them");
  const bool is_map = spot.node->kind == Node::Kind::kMap;
  CompletePath(is_map ? KeyIn(spot, "python") : spot, options, program, packages.python, faults);
  CompletePath(KeyIn(spot, "wheels"), options, program, packages.wheels, faults);
}

void CompleteCommand(const Spot& spot, const ParseOptions& options, Program& program,
                     Faults& faults) {
  const bool list = spot.node->kind == Node::Kind::kList;
  if (!list || program.command.size() != spot.node->items.size()) return;  // already a fault
  if (program.command.empty() || program.command.front().empty()) {
    faults.AtValue(spot, "is empty; name the program and its arguments");
    return;
  }

  std::string& executable = program.command.front();
  const Spot first = Item(spot, 0);
  if (executable.find("${") != executable.npos) {
    faults.AtValue(first, "the program itself cannot be a placeholder; write its name");
    return;
  }
  if (executable.find('/') == executable.npos) return;  // the executor searches PATH
  if (!IsAbsolute(executable) && program.code) {
    MakeRelative(first, executable, faults);
    executable = "./" + executable;
    return;
  }
  if (!IsAbsolute(executable)) {
    if (options.directory.empty()) {
      faults.AtValue(first, "is a relative path, but the sweep file's folder is not known; " +
                                WriteAbsolute(options));
      return;
    }
    executable = MakeAbsolute(executable, options.directory);
  }
  if (!options.program_fault) return;
  const std::string fault = options.program_fault(executable);
  if (!fault.empty()) faults.AtValue(first, executable + ": " + fault);
}

void CheckEnvironment(const Spot& spot, const Program& program, Faults& faults) {
  if (program.environment.size() > kMaxVariables) {
    faults.AtValue(spot, "more than " + std::to_string(kMaxVariables) + " variables; remove some");
    return;
  }
  for (const auto& [name, value] : program.environment) {
    const Place place = spot.place.Key(name);
    const Mark mark = spot.node->Find(name)->mark;
    if (name.empty() || name.find_first_of(std::string_view("=\0", 2)) != name.npos) {
      faults.Add(
          place, mark,
          "is not a valid name of an environment variable; a name is not empty and has no =");
    } else if (name.starts_with(kReservedPrefix)) {
      faults.Add(place, mark, "names that begin with ATTUNE_ are set by the executor; rename it");
    }
  }
}

void CheckSecrets(const Spot& spot, const Program& program, Faults& faults) {
  const std::span names(program.secrets);
  if (spot.node == nullptr || names.size() != spot.node->items.size()) return;  // already a fault
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    const auto is_name = [&](const auto& variable) { return variable.first == name; };
    if (!IsSecretName(name)) {
      faults.AtValue(Item(spot, i),
                     "is not a valid name of a secret; use 1 to 128 letters, digits or _, and do "
                     "not begin with a digit or ATTUNE_");
    } else if (std::ranges::find(names.first(i), name) != names.first(i).end()) {
      faults.AtValue(Item(spot, i), name + " is listed twice; remove one of them");
    } else if (std::ranges::any_of(program.environment, is_name)) {
      faults.AtValue(Item(spot, i), name + " is also in env; remove one of the two");
    }
  }
}

// Checks one placeholder; `text` is the part between ${ and }.
void CheckPlaceholder(std::string_view text, bool whole_argument, const Spot& argument,
                      const SearchSpace& space, Faults& faults) {
  const std::string written = "${" + std::string(text) + "}";
  const Mark mark = argument.ValueMark();
  if (text == "config") return;
  if (text == "args" || text == "args.flags" || text == "args.plain") {
    if (!whole_argument) faults.AtValue(argument, written + " must be a separate argument");
    return;
  }
  if (!text.starts_with(kParamPrefix)) {
    faults.AddMisspelt(
        argument.place, mark,
        "unknown placeholder " + written +
            "; use ${args}, ${args.flags}, ${args.plain}, ${config} or ${param.NAME}, or $${ for a "
            "literal ${",
        text, [] {
          return std::vector<std::string>{"args", "args.flags", "args.plain", "config"};
        });
    return;
  }
  const std::string_view name = text.substr(kParamPrefix.size());
  const Parameter* parameter = space.Find(name);
  if (parameter == nullptr) {
    faults.AddMisspelt(argument.place, mark, written + ": unknown parameter", name,
                       [&] { return NamesOf(space.parameters()); });
  } else if (!parameter->when.empty()) {
    faults.AtValue(
        argument,
        written + ": this parameter has a `when`, so it may be absent; use ${args} or ${config}");
  }
}

}  // namespace

void CompleteProgram(const Fields& file, const ParseOptions& options, Program& program,
                     Faults& faults) {
  CompleteCommand(file.spot("command"), options, program, faults);
  CheckEnvironment(file.spot("env"), program, faults);
  CheckSecrets(file.spot("secrets"), program, faults);

  if (program.code) CompleteCode(file.spot("code"), options, *program.code, faults);
  if (program.packages) CompletePackages(file.spot("environment"), options, program, faults);
  const Spot& spot = file.spot("working_directory");
  std::string& directory = program.working_directory;
  if (program.code) {
    MakeRelative(spot, directory, faults);
  } else if (IsAbsolute(directory)) {
    directory = MakeAbsolute(directory, "/");
  } else if (!options.directory.empty()) {
    directory = MakeAbsolute(directory, options.directory);
  } else {
    faults.AtValue(spot, (spot.node == nullptr
                              ? "missing, and the sweep file's folder is not known; "
                              : "is a relative path, but the sweep file's folder is not known; ") +
                             WriteAbsolute(options));
  }
}

void CheckPlaceholders(const Spot& command, const SearchSpace& space, Faults& faults) {
  if (command.node == nullptr || command.node->kind != Node::Kind::kList) return;
  for (size_t i = 0; i < command.node->items.size(); ++i) {
    const std::string_view argument = command.node->items[i].text;
    size_t close = 0;
    for (size_t open = argument.find("${"); open != argument.npos;
         open = argument.find("${", std::max(close, open + 2))) {
      if (open > 0 && argument[open - 1] == '$') continue;
      const Spot item = Item(command, i);
      close = argument.find('}', open);
      if (close == argument.npos) {
        faults.AtValue(item, "${ without a closing }; write $${ for a literal ${");
        break;
      }
      const bool whole = open == 0 && close + 1 == argument.size();
      CheckPlaceholder(argument.substr(open + 2, close - open - 2), whole, item, space, faults);
    }
  }
}

}  // namespace attune::sweepfile
