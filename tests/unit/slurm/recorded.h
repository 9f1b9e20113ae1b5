#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "slurm/command.h"

namespace attune::slurm {

// Slurm's tools as they answered once, by the tool's name; what was run is noted.
class Recorded final : public Commands {
 public:
  using Answer = std::function<Result<Ran>(const std::vector<std::string>& argv)>;

  Result<Ran> Run(const std::vector<std::string>& argv) override {
    runs.push_back(argv);
    const auto found = answers.find(argv[0]);
    if (found == answers.end())
      return Error{ErrorCode::kNotFound, "there is no `" + argv[0] + "` in PATH on this machine"};
    return found->second(argv);
  }

  void Says(const std::string& tool, std::string out) {
    answers[tool] = [=](auto&) { return Ran{.out = out}; };
  }
  void Fails(const std::string& tool, std::string err, int code = 1) {
    answers[tool] = [=](auto&) { return Ran{.exit_code = code, .err = err}; };
  }
  int Count(const std::string& tool) const {
    int count = 0;
    for (const auto& argv : runs) count += argv[0] == tool;
    return count;
  }

  std::map<std::string, Answer> answers;
  std::vector<std::vector<std::string>> runs;
};

}  // namespace attune::slurm
