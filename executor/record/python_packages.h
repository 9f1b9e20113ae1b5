#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/gang/spec.h"
#include "executor/record/child_programs.h"

namespace attune::agent {

// A Python and the packages that its programs can import.
struct Python {
  std::string executable;
  std::string version;                          // such as 3.11.7
  std::map<std::string, std::string> packages;  // normalized name (PEP 503) -> version
};

// Lists the packages of interpreters. It starts an interpreter, and remembers the answer until a
// folder of its modules changes. Not thread-safe.
class PythonPackages {
 public:
  explicit PythonPackages(std::chrono::milliseconds timeout) : timeout_(timeout) {}

  // Starts the interpreter as the program would. `folder` names the folder of the program, also if
  // each trial has its own copy. nullopt: it is not a Python or does not answer.
  std::optional<Python> List(const std::filesystem::path& interpreter, const gang::Program& program,
                             const std::string& folder, ChildPrograms& children);

 private:
  // Everything that decides which packages an interpreter finds.
  struct Key {
    std::filesystem::path interpreter;
    std::vector<std::pair<std::string, std::string>> environment;
    std::string folder;
    auto operator<=>(const Key&) const = default;
  };
  using FileTimes = std::map<std::string, std::optional<std::filesystem::file_time_type>>;
  struct Known {
    Python python;
    FileTimes files;  // the interpreter, and the folders of its modules
  };

  static FileTimes TimesOf(const std::vector<std::string>& files);

  const std::chrono::milliseconds timeout_;
  std::map<Key, Known> known_;
};

}  // namespace attune::agent
