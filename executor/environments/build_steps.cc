#include "executor/environments/build_steps.h"

#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "executor/processes/environment.h"
#include "system/spawn.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;
using Steps = std::vector<RunningCommand::Request>;

// Writes the dependencies of a project to a file of requirements.
constexpr std::string_view kListDependencies = R"(
import sys
try:
    import tomllib
except ModuleNotFoundError:
    sys.exit("reading pyproject.toml needs uv, or Python 3.11 or newer; install uv on this host, or name a file of "
             "requirements")
with open(sys.argv[1], "rb") as file:
    project = tomllib.load(file).get("project")
if project is None or "dependencies" in project.get("dynamic", []):
    sys.exit(sys.argv[1] + " has no list `dependencies` in its table [project]; add it, or name a file of requirements")
with open(sys.argv[2], "w", encoding="utf-8") as out:
    out.writelines(line + "\n" for line in project.get("dependencies", []))
)";

class StepList {
 public:
  StepList(const PackageFiles& files, const fs::path& environment)
      : files_(files), environment_(environment) {}

  void Add(const fs::path& program, std::vector<std::string> arguments) {
    steps_.push_back({.program = program,
                      .arguments = std::move(arguments),
                      .environment = gang::ProgramEnvironment(
                          {{"VIRTUAL_ENV", environment_.string()},
                           {"UV_PROJECT_ENVIRONMENT", environment_.string()},
                           {"PIP_USER", "0"},
                           // Packages of other folders must not count as installed.
                           {"PYTHONPATH", ""},
                           {"PYTHONHOME", ""},
                           {"PYTHONUNBUFFERED", "1"}}),
                      .folder = files_.file.parent_path()});
  }

  // Adds a command that installs the packages of `requirements`.
  void AddInstall(const fs::path& program, std::vector<std::string> arguments,
                  const fs::path& requirements) {
    if (!files_.wheels.empty())
      arguments.insert(arguments.end(), {"--no-index", "--find-links", files_.wheels.string()});
    arguments.insert(arguments.end(), {"--requirement", requirements.string()});
    Add(program, std::move(arguments));
  }

  Steps Take() { return std::move(steps_); }

 private:
  const PackageFiles& files_;
  const fs::path& environment_;
  Steps steps_;
};

Steps UvSteps(const fs::path& uv, const PackageFiles& files, const Interpreter& interpreter,
              const fs::path& environment) {
  StepList steps(files, environment);
  const std::string python = interpreter.path.string();
  // `uv sync` installs from the addresses in the lock, so it cannot install from a folder.
  const bool is_lock = files.kind == PackageFilesKind::kLock;
  if (is_lock && files.wheels.empty()) {
    steps.Add(
        uv, {"sync", "--frozen", "--no-install-project", "--compile-bytecode", "--python", python});
    return steps.Take();
  }
  steps.Add(uv, {"venv", "--python", python, environment.string()});
  fs::path requirements = files.file;
  if (is_lock) {
    requirements = environment.parent_path() / "requirements.txt";
    steps.Add(uv, {"export", "--quiet", "--frozen", "--no-emit-project", "--python", python,
                   "--output-file", requirements.string()});
  }
  steps.AddInstall(
      uv,
      {"pip", "install", "--python", (environment / "bin/python3").string(), "--compile-bytecode"},
      requirements);
  return steps.Take();
}

// Python's option -I ignores modules in the current folder, which is the user's.
Steps PipSteps(const PackageFiles& files, const Interpreter& interpreter,
               const fs::path& environment) {
  StepList steps(files, environment);
  steps.Add(interpreter.path, {"-I", "-m", "venv", environment.string()});
  const fs::path python = environment / "bin/python3";
  fs::path requirements = files.file;
  if (files.kind == PackageFilesKind::kProject) {
    requirements = environment.parent_path() / "requirements.txt";
    steps.Add(python, {"-I", "-c", std::string(kListDependencies), files.file.string(),
                       requirements.string()});
  }
  steps.AddInstall(python,
                   {"-I", "-m", "pip", "install", "--no-input", "--disable-pip-version-check",
                    "--progress-bar", "off"},
                   requirements);
  return steps.Take();
}

}  // namespace

PackageTool FindPackageTool() {
  const char* path = std::getenv("PATH");
  const Result<fs::path> uv = FindProgram("uv", {}, path == nullptr ? "/usr/bin:/bin" : path);
  return uv.ok() ? PackageTool{.name = "uv", .uv = *uv} : PackageTool{.name = "pip", .uv = {}};
}

Result<Steps> BuildSteps(const PackageTool& tool, const PackageFiles& files,
                         const Interpreter& interpreter, const fs::path& environment) {
  if (!tool.uv.empty()) return UvSteps(tool.uv, files, interpreter, environment);
  if (files.kind == PackageFilesKind::kLock)
    return Invalid(
        "uv.lock needs uv, which is not in PATH of the executor on this host; install "
        "uv there, or name a file of requirements");
  if (files.names_sources)
    return Invalid(
        "[tool.uv.sources] in pyproject.toml needs uv, which is not in PATH of the "
        "executor on this host; install uv there, or name a file of requirements");
  return PipSteps(files, interpreter, environment);
}

std::string ToLine(const RunningCommand::Request& step) {
  std::string line = step.program.filename();
  for (const std::string& argument : step.arguments)
    line += " " + (argument.find('\n') == argument.npos ? argument : "…");
  return line;
}

}  // namespace attune::agent
