#pragma once

#include <sys/types.h>

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "system/spawn.h"

namespace attune::slurm {

struct Ran {
  int exit_code = 0;  // 128 and the signal's number where a signal ended it
  std::string out;
  std::string err;
};

// Runs programs to their end.
class Commands {
 public:
  virtual ~Commands() = default;

  // `argv[0]` is looked up in PATH; no shell is involved. Any exit code is a Ran. Errors: kNotFound
  // when there is no such program, kUnavailable when it did not end in time; what it had begun may
  // have happened then.
  virtual Result<Ran> Run(const std::vector<std::string>& argv) = 0;
};

// Those of this machine. What is run dies with the thread that runs it.
class SystemCommands final : public Commands {
 public:
  // Longer than Slurm's tools wait for their controller, 9 s by default, so that their words come.
  static constexpr std::chrono::seconds kPatience{30};

  explicit SystemCommands(std::chrono::milliseconds patience = kPatience) : patience_(patience) {}
  Result<Ran> Run(const std::vector<std::string>& argv) override;

  // Sends SIGTERM to what Run() runs in another thread; what it runs later ends at once.
  void End();

 private:
  Result<pid_t> Start(const SpawnRequest& request);
  int Await(pid_t child);

  std::chrono::milliseconds patience_;
  std::mutex mutex_;
  bool ending_ = false;  // under mutex_, as is what follows
  pid_t running_ = 0;    // not reaped yet; 0: none
};

}  // namespace attune::slurm
