#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "executor/processes/guard.h"
#include "executor/processes/loop.h"
#include "system/spawn.h"
#include "system/unique_fd.h"

namespace attune::agent {

// The children of this process that run commands. They have their own process groups, so the
// supervisor of gangs must know them (Supervisor::Options::is_other_child). Thread-safe.
class CommandProcesses {
 public:
  void Add(pid_t pid);
  void Remove(pid_t pid);
  bool Contains(pid_t pid) const;

 private:
  mutable std::mutex mutex_;
  std::set<pid_t> pids_;  // under mutex_
};

// A program that runs in its own process group until it ends or this object is destroyed. The guard
// kills the group if this process ends first.
//
// Use on the loop's thread only.
class RunningCommand {
 public:
  // Longer lines of output are cut.
  static constexpr size_t kLineBytesMax = 4096;

  struct Request {
    std::filesystem::path program;         // absolute
    std::vector<std::string> arguments;    // without the program
    std::vector<std::string> environment;  // NAME=value
    std::filesystem::path folder;          // in which it runs; empty: this process's
  };
  struct Services {
    gang::Loop& loop;
    gang::Guard& guard;
    CommandProcesses& processes;
  };
  struct Events {
    std::function<void(std::string_view)> line;  // of stdout and stderr, without its end
    // Called once, after the last line, when no process of the group is left. nullopt: the status
    // is not known. It may destroy this object.
    std::function<void(std::optional<ExitStatus>)> ended;
  };

  static Result<std::unique_ptr<RunningCommand>> Start(Services services, const Request& request,
                                                       Events events);

  // Kills the group, and returns when it is gone.
  ~RunningCommand();

 private:
  RunningCommand(Services services, Events events)
      : services_(services), events_(std::move(events)) {}

  void ReadOutput();
  void AddOutput(std::string_view bytes);
  void PassLine();
  void OnExit();
  std::optional<ExitStatus> EndGroup();

  Services services_;
  Events events_;
  Child child_;
  UniqueFd output_;
  std::string line_;  // the line that has not ended
  gang::Loop::Subscription output_watch_;
  gang::Loop::Subscription exit_watch_;
};

}  // namespace attune::agent
