#include "executor/environments/interpreter.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

#include "executor/gang/preparation.h"
#include "executor/processes/environment.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;

constexpr size_t kKnownMax = 100;
constexpr size_t kDescriptionLines = 4;

// Prints the members of Interpreter. The current folder is not searched for modules, because it may
// contain a module with a name of the standard library.
constexpr std::string_view kDescribe = R"(
import sys
sys.path = [folder for folder in sys.path if folder]
import importlib.util, os, platform
try:
    library = os.confstr("CS_GNU_LIBC_VERSION") or ""
except (AttributeError, OSError, ValueError):
    library = ""
attune = importlib.util.find_spec("attune")
package = os.path.dirname(attune.origin) if attune and attune.origin else ""
if not os.path.exists(os.path.join(package, "launcher.py")):
    package = ""
for text in sys.executable, sys.version, " ".join([platform.system(), platform.machine(), library]), package:
    sys.stdout.buffer.write(b"description " + os.fsencode(" ".join(text.split("\n"))) + b"\n")
)";
constexpr std::string_view kLinePrefix = "description ";

// The value of a variable for the program; nullopt: it is not set.
std::optional<std::string> ValueIn(const gang::Program& program, const std::string& name) {
  const auto& changes = program.environment;
  const auto change = std::find_if(changes.rbegin(), changes.rend(),
                                   [&](const auto& each) { return each.first == name; });
  return change == changes.rend() ? std::nullopt : std::optional(change->second);
}

std::optional<std::string> ValueFor(const gang::Program& program, const std::string& name) {
  if (std::optional<std::string> value = ValueIn(program, name)) return value;
  const char* own = std::getenv(name.c_str());
  return own == nullptr ? std::nullopt : std::optional<std::string>(own);
}

}  // namespace

Result<fs::path> LocateInterpreter(const gang::Program& program) {
  const bool names_python =
      !program.command.empty() && gang::HasNameOfPython(program.command.front());
  const std::string name = names_python ? program.command.front() : "python3";
  Result<fs::path> located = gang::LocateProgram(program, name);
  if (!located.ok())
    return Invalid("an environment needs Python: " + located.error().message +
                   "; install Python on this host, or correct the command");
  return located;
}

RunningCommand::Request DescriptionCommand(const fs::path& located, const gang::Program& program) {
  return {.program = located,
          .arguments = {"-c", std::string(kDescribe)},
          .environment = gang::ProgramEnvironment(program.environment),
          .folder = program.working_directory};
}

Result<Interpreter> ReadDescription(const fs::path& located,
                                    const std::vector<std::string>& lines) {
  std::vector<std::string> texts;
  for (const std::string& line : lines) {
    if (line.starts_with(kLinePrefix)) texts.push_back(line.substr(kLinePrefix.size()));
  }
  if (texts.size() != kDescriptionLines || !texts[0].starts_with('/'))
    return Invalid(located.string() + " is not a Python that can build an environment" +
                   (lines.empty() ? "" : ": " + lines.back()));
  return Interpreter{.path = std::move(texts[0]),
                     .version = std::move(texts[1]),
                     .platform = std::move(texts[2]),
                     .attune = std::move(texts[3])};
}

std::optional<Interpreter> KnownInterpreters::Find(const fs::path& located,
                                                   const gang::Program& program) const {
  const auto found = known_.find(located);
  if (found == known_.end()) return std::nullopt;
  const Known& known = found->second;
  const Result<gang::ProgramIdentity> identity = gang::IdentifyProgram(located);
  std::error_code failed;
  if (!identity.ok() || *identity != known.identity ||
      ValueFor(program, "PYTHONPATH").value_or("") != known.python_path ||
      !fs::exists(known.interpreter.attune, failed))
    return std::nullopt;
  return known.interpreter;
}

// Scripts that choose among interpreters, as those of pyenv, may choose another one next time.
void KnownInterpreters::Add(const fs::path& located, const gang::Program& program,
                            const Interpreter& interpreter) {
  std::error_code failed;
  const Result<gang::ProgramIdentity> identity = gang::IdentifyProgram(located);
  if (!identity.ok() || !fs::equivalent(located, interpreter.path, failed)) return;
  if (known_.size() >= kKnownMax) known_.clear();
  known_.insert_or_assign(located,
                          Known{.identity = *identity,
                                .python_path = ValueFor(program, "PYTHONPATH").value_or(""),
                                .interpreter = interpreter});
}

void UseEnvironment(const fs::path& environment, gang::Program& program) {
  const fs::path programs = environment / "bin";
  auto& changes = program.environment;
  // An empty value counts as none for Python.
  if (ValueFor(program, "PYTHONHOME")) changes.emplace_back("PYTHONHOME", "");
  if (!ValueIn(program, "PYTHONPATH") && ValueFor(program, "PYTHONPATH"))
    changes.emplace_back("PYTHONPATH", "");
  const std::string path = ValueFor(program, "PATH").value_or("/usr/bin:/bin");
  changes.emplace_back("PATH", programs.string() + ":" + path);
  changes.emplace_back("VIRTUAL_ENV", environment.string());
  std::string& executable = program.command.front();
  if (executable.find('/') != executable.npos && gang::HasNameOfPython(executable))
    executable = programs / "python3";
}

}  // namespace attune::agent
