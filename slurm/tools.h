#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "pilots/engine.h"
#include "system/command.h"

namespace attune::slurm {

struct Partition {
  std::string name;
  bool up = true;
  std::optional<std::chrono::seconds> time_limit;  // nullopt: none
  int nodes = 0;
  // The minimum over those nodes that have the most GPUs.
  int cpus = 0;
  int64_t memory_bytes = 0;
  int gpus = 0;
};

// Calls Slurm's tools. Each call runs one process for some milliseconds. If the controller is down,
// the tool fails after nine seconds. The message of an error is the text that the tool printed.
//
// - kInvalid: Slurm refuses the request, and would refuse it again.
// - kUnavailable: Slurm did not answer, or cannot accept the request now.
// - kNotFound: this machine has no Slurm.
class Tools {
 public:
  explicit Tools(Commands& commands) : commands_(commands) {}

  // Submits a job and returns its id.
  Result<std::string> Submit(const std::vector<std::string>& options,
                             const std::filesystem::path& script);

  // Fails if Submit would be refused. Submits nothing.
  Status Check(const std::vector<std::string>& options);

  // This user's jobs with this name prefix, including jobs that ended a short time ago (the
  // controller's MinJobAge).
  Result<std::vector<pilots::Job>> Jobs(const std::string& name_prefix);

  // Asks the batch script to end (SIGTERM). Does not signal the processes that it started.
  Status RequestExit(const std::vector<std::string>& ids);
  // Ends jobs with all their processes.
  Status Cancel(const std::vector<std::string>& ids);

  // The message of kNotFound names the existing partitions.
  Result<Partition> FindPartition(const std::string& partition);

 private:
  Result<std::string> Run(std::vector<std::string> argv);

  Commands& commands_;
};

}  // namespace attune::slurm
