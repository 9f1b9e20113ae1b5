#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "executor/environments/interpreter.h"
#include "executor/environments/running_command.h"
#include "system/unique_fd.h"

namespace attune::agent {

// One build of an environment: commands that run one after another until one fails. Their output
// goes to a log.
//
// Use on the loop's thread only. The destructor ends the command in progress.
class EnvironmentBuild {
 public:
  static constexpr size_t kErrorLinesMax = 10;      // last lines of output in an error
  static constexpr size_t kLogBytesMax = 16 << 20;  // of the log; further output is dropped

  struct Plan {
    std::vector<RunningCommand::Request> steps;
    std::filesystem::path environment;
    std::filesystem::path log;
    std::filesystem::path attune;  // folder of the package attune; empty: none
    std::chrono::milliseconds timeout{0};
  };
  struct Events {
    std::function<void(std::string_view)> line;  // of output
    // Called once, never from within Start(). kUnavailable: another build may succeed. It may
    // destroy this object.
    std::function<void(Status)> ended;
  };

  EnvironmentBuild(RunningCommand::Services services, Plan plan, Events events)
      : services_(services), plan_(std::move(plan)), events_(std::move(events)) {}

  Status Start();

 private:
  Status RunNext();
  void OnLine(std::string_view line);
  void OnStepEnded(std::optional<ExitStatus> status);
  Status FailedStep(std::optional<ExitStatus> status) const;

  RunningCommand::Services services_;
  const Plan plan_;
  const Events events_;
  size_t next_ = 0;  // index of the next step
  UniqueFd log_;
  size_t log_bytes_ = 0;
  std::deque<std::string> last_lines_;
  std::unique_ptr<RunningCommand> command_;
  gang::Loop::Subscription timeout_;
};

}  // namespace attune::agent
