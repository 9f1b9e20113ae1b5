#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "executor/environments/interpreter.h"
#include "executor/environments/package_files.h"
#include "executor/environments/running_command.h"

namespace attune::agent {

// The tool that installs packages.
struct PackageTool {
  std::string name;          // uv or pip
  std::filesystem::path uv;  // empty: pip of the interpreter
};

// uv if it is in PATH, else pip.
PackageTool FindPackageTool();

// The commands that make the virtual environment `environment` and install the packages, in order.
// They may write further files to the parent folder, which must exist. They use the configuration
// of uv and pip for this user and host: indexes, proxies, caches.
//
// kInvalid: the tool cannot read the files.
Result<std::vector<RunningCommand::Request>> BuildSteps(const PackageTool& tool,
                                                        const PackageFiles& files,
                                                        const Interpreter& interpreter,
                                                        const std::filesystem::path& environment);

// The command as a line for people.
std::string ToLine(const RunningCommand::Request& step);

}  // namespace attune::agent
