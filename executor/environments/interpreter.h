#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "executor/environments/running_command.h"
#include "executor/gang/launcher.h"
#include "executor/gang/spec.h"

namespace attune::agent {

// A Python of this host, as it describes itself.
struct Interpreter {
  std::filesystem::path path;
  std::string version;   // with the compiler and the time of its build
  std::string platform;  // machine, system and C library
  // The folder of the package attune that programs of this interpreter import; empty: none.
  std::filesystem::path attune;
};

// Finds the interpreter for the environment of a program: the Python that its command names, else
// python3 in PATH.
Result<std::filesystem::path> LocateInterpreter(const gang::Program& program);

// The command that prints the description of an interpreter.
RunningCommand::Request DescriptionCommand(const std::filesystem::path& located,
                                           const gang::Program& program);

// Reads the output of this command. kInvalid: it is something else.
Result<Interpreter> ReadDescription(const std::filesystem::path& located,
                                    const std::vector<std::string>& lines);

// Remembers descriptions, because starting an interpreter takes longer than starting a warm trial.
class KnownInterpreters {
 public:
  // nullopt: not known, or it may have changed.
  std::optional<Interpreter> Find(const std::filesystem::path& located,
                                  const gang::Program& program) const;
  void Add(const std::filesystem::path& located, const gang::Program& program,
           const Interpreter& interpreter);

 private:
  struct Known {
    gang::ProgramIdentity identity;
    std::string python_path;  // PYTHONPATH of the program
    Interpreter interpreter;
  };
  std::map<std::filesystem::path, Known> known_;
};

// Changes a program so that it runs in the virtual environment. PYTHONPATH of the executor does not
// apply to it, because its packages would hide those of the environment.
void UseEnvironment(const std::filesystem::path& environment, gang::Program& program);

}  // namespace attune::agent
