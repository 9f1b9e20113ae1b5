#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "slurm/command.h"
#include "slurm/text.h"

namespace attune::slurm {

struct Job {
  std::string id;
  std::string name;
  std::string state;  // in Slurm's word: RUNNING
  std::string ends;   // 2026-11-22T23:18:07; N/A or empty where nobody knows yet
  int nodes = 1;
  std::chrono::seconds ran{0};               // until now, or its end
  std::optional<std::chrono::seconds> left;  // of its time; nullopt: it has no limit
  std::string node;                          // n3, n[1-4]; empty: none yet
  std::string reason;

  Phase phase() const { return PhaseOf(state); }
};

struct Partition {
  std::string name;
  bool up = true;
  std::optional<std::chrono::seconds> time_limit;  // nullopt: none
  int nodes = 0;
  // Of the node with the least, of those with the most GPUs.
  int cpus = 0;
  int64_t memory_bytes = 0;
  int gpus = 0;
};

// Slurm's tools. Each call is one process, some milliseconds; where the controller is away it takes
// nine seconds to say so. An error has the tool's own words. kInvalid: Slurm refuses what was
// asked, and will again; kUnavailable: it could not be asked, or has no room for it now;
// kNotFound: this machine has no Slurm.
class Tools {
 public:
  explicit Tools(Commands& commands) : commands_(commands) {}

  // The id of the new job.
  Result<std::string> Submit(const std::vector<std::string>& options,
                             const std::filesystem::path& script);

  // Whether Submit would be refused; nothing is submitted.
  Status Check(const std::vector<std::string>& options);

  // This user's jobs whose names begin so, those included that ended a short while ago (the
  // controller's MinJobAge).
  Result<std::vector<Job>> Jobs(const std::string& name_prefix);

  // Tells the batch script, and nothing that it has started, to end (SIGTERM).
  Status Ask(const std::vector<std::string>& ids);
  // Ends jobs with all that runs in them.
  Status Cancel(const std::vector<std::string>& ids);

  // kNotFound names those there are.
  Result<Partition> Find(const std::string& partition);

 private:
  Result<std::string> Run(std::vector<std::string> argv);

  Commands& commands_;
};

}  // namespace attune::slurm
