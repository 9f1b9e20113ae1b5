#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "system/command.h"

namespace attune::slurm {

// Slurm's tools with recorded answers, by the tool's name. `runs` records the calls.
class RecordedCommands final : public Commands {
 public:
  using Answer = std::function<Result<CommandResult>(const std::vector<std::string>& argv)>;

  Result<CommandResult> Run(const std::vector<std::string>& argv) override {
    runs.push_back(argv);
    const auto found = answers.find(argv[0]);
    if (found == answers.end())
      return Error{ErrorCode::kNotFound, "there is no `" + argv[0] + "` in PATH on this machine"};
    return found->second(argv);
  }

  void SetOutput(const std::string& tool, std::string out) {
    answers[tool] = [=](auto&) { return CommandResult{.out = out}; };
  }
  void SetFailure(const std::string& tool, std::string err, int code = 1) {
    answers[tool] = [=](auto&) { return CommandResult{.exit_code = code, .err = err}; };
  }
  int CountRuns(const std::string& tool) const {
    int count = 0;
    for (const auto& argv : runs) count += argv[0] == tool;
    return count;
  }

  std::map<std::string, Answer> answers;
  std::vector<std::vector<std::string>> runs;
};

}  // namespace attune::slurm
