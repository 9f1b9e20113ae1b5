#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "pilots/plan.h"
#include "slurm/tools.h"

namespace attune::slurm {

// Slurm asks a pilot to leave this long before its time limit. Slurm checks time limits every 30 s,
// so the signal may come up to a minute earlier.
inline constexpr std::chrono::seconds kLeaveBefore{60};
// A pilot that was asked to leave is cancelled after this time.
inline constexpr std::chrono::seconds kLeaveTimeout{30};
// The same for `attune slurm down`.
inline constexpr std::chrono::seconds kDownTimeout{15};
// A pilot without contact to the server for this long ends by itself.
inline constexpr std::chrono::seconds kGiveUpDefault{600};

// The request for each pilot. Empty text and nullopt: the default of the cluster.
struct PilotOptions {
  int nodes = 1;
  std::string partition;
  std::string account;
  std::string qos;
  std::string gres;
  std::string time;               // a time limit in sbatch's format
  std::optional<int> cpus;        // nullopt: a whole node
  std::string memory;             // in sbatch's format; empty, with a whole node: all of it
  std::vector<std::string> more;  // more options for sbatch, after all others
};

// Paths and addresses that pilots use.
struct PilotPlaces {
  std::filesystem::path program;     // the `attune` program on the nodes
  std::string server;                // HOST:PORT for executors
  std::filesystem::path token_file;  // the join token
  std::filesystem::path data_dir;    // the executors' data; all nodes see it
  std::filesystem::path logs;
  std::vector<std::string> labels;  // NAME=VALUE, the executors' labels
  std::chrono::seconds give_up = kGiveUpDefault;
};

// sbatch's options for one pilot. `--signal=B:` sends the signal before the time limit only to the
// batch script. The script is the executor, which then ends its ranks in order, or it tells the
// executors of its nodes. Without `B:`, Slurm would signal the ranks as well. A job with several
// nodes ends when it loses a node, because its gangs cannot run on the remaining nodes.
std::vector<std::string> SbatchOptions(const PilotOptions& options, const PilotPlaces& places,
                                       const std::string& name);

// The batch script of all pilots of a fleet. `script`: its path, which all nodes see.
//
// - On one node, the script becomes an executor with the job's CPUs, its memory, and the GPUs in
//   CUDA_VISIBLE_DEVICES (no GPUs if the job requested none).
// - On several nodes, it starts an executor on each node with `srun`. On SIGTERM it asks them to
//   leave, and it ends after all of them have ended.
// - With the argument `allocation`, it starts an executor on each node of its allocation. These
//   executors are named job-JOB-NODE.
//
// The loss of an executor does not end the others. Slurm does not bind ranks to CPUs.
std::string PilotScript(const PilotPlaces& places, const std::filesystem::path& script);

// The expected resources of a pilot's node. They are used until the first pilot has joined.
pilots::Resources NodeResources(const PilotOptions& options, const Partition& partition);

// kInvalid if this partition cannot run such a pilot. Slurm itself accepts some of these requests,
// and the job then waits for ever.
Status Check(const PilotOptions& options, const Partition& partition);

}  // namespace attune::slurm
