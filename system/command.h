#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "system/spawn.h"

namespace attune {

struct CommandResult {
  int exit_code = 0;  // 128 + the signal's number if a signal ended the program
  std::string out;
  std::string err;
};

// Runs programs and waits for their end.
class Commands {
 public:
  virtual ~Commands() = default;

  // Looks up `argv[0]` in PATH; uses no shell. A program that fails is a result with its exit code.
  // Errors: kNotFound if there is no such program, kUnavailable if it did not end in time. After
  // kUnavailable, the program may have done its work or not.
  virtual Result<CommandResult> Run(const std::vector<std::string>& argv) = 0;
};

// Slurm's tools give up after 9 s without their controller, and print an error. This is longer.
inline constexpr std::chrono::seconds kCommandTimeout{30};

struct CommandOptions {
  std::chrono::milliseconds timeout = kCommandTimeout;
  // NAME=value; nullopt: the environment of this program.
  std::optional<std::vector<std::string>> environment;
  std::filesystem::path working_directory;  // empty: that of this program
  size_t output_bytes_max = SIZE_MAX;       // of stdout and stderr together
  uint64_t memory_bytes_max = 0;            // of the address space; 0: as much as this program
};

// Runs programs of this machine. A program dies with the thread that runs it. Run() also returns
// kUnavailable for a program that writes more than CommandOptions::output_bytes_max.
class SystemCommands final : public Commands {
 public:
  explicit SystemCommands(std::chrono::milliseconds timeout = kCommandTimeout)
      : SystemCommands(CommandOptions{.timeout = timeout}) {}
  explicit SystemCommands(CommandOptions options) : options_(std::move(options)) {}
  Result<CommandResult> Run(const std::vector<std::string>& argv) override;

  // Sends SIGTERM to the program that Run() runs in another thread. Later calls of Run() fail.
  void End();

 private:
  Result<pid_t> Start(const SpawnRequest& request);
  int WaitForExit(pid_t child);

  const CommandOptions options_;
  std::mutex mutex_;
  bool ending_ = false;  // protected by mutex_, like running_
  pid_t running_ = 0;    // the program that was not reaped yet; 0: none
};

}  // namespace attune
