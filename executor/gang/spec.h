#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "executor/gang/channel_types.h"
#include "executor/processes/containers.h"

namespace attune::gang {

// One run of a trial; the epoch of its lease fences off stale messages.
struct AttemptId {
  uint64_t sweep = 0;
  uint32_t trial = 0;
  uint32_t attempt = 0;
  uint64_t epoch = 0;

  auto operator<=>(const AttemptId&) const = default;
};

// For logs and messages: `s3/17.2`, trial 17's second attempt.
inline std::string ToString(const AttemptId& id) {
  return "s" + std::to_string(id.sweep) + "/" + std::to_string(id.trial) + "." +
         std::to_string(id.attempt);
}

// Names a checkpoint on any host.
struct CheckpointName {
  uint64_t sweep = 0;
  uint32_t trial = 0;
  uint32_t attempt = 0;
  int64_t step = 0;
};

// For logs and messages: `s3/17/2-900`.
inline std::string ToString(const CheckpointName& name) {
  return "s" + std::to_string(name.sweep) + "/" + std::to_string(name.trial) + "/" +
         std::to_string(name.attempt) + "-" + std::to_string(name.step);
}

// An executor that sends checkpoints to others directly.
struct PieceServer {
  std::string executor;  // its name
  std::string address;   // IPv4
  uint16_t port = 0;
  std::string key;
};

// A copy of a checkpoint in an object store.
struct StoredCopy {
  std::string address;  // of the store
  std::string path;     // below the address
  // Credentials and settings of the store; they replace variables of this process.
  std::vector<std::pair<std::string, std::string>> environment;
};

// A checkpoint on another host or a snapshot of code, and its sources in addition to the server.
struct RemoteFiles {
  CheckpointName name;
  std::string folder;  // name of its folder
  std::vector<PieceServer> servers;
  std::optional<StoredCopy> stored = {};
  std::string code;  // digest of the snapshot; then there is no checkpoint
};

// For logs and messages: `checkpoint s3/17/2-900`, `code sha256:1d0c9a2b`.
inline std::string ToString(const RemoteFiles& files) {
  constexpr size_t kShownDigestBytes = 15;
  return files.code.empty() ? "checkpoint " + ToString(files.name)
                            : "code " + files.code.substr(0, kShownDigestBytes);
}

// A file that each host downloads once.
struct DataFile {
  std::string name;
  std::string url;       // http, https or file
  std::string sha256;    // 64 lower-case digits
  std::string variable;  // the environment variable with the path of the file
};

// For logs and messages: `data cifar10`.
inline std::string ToString(const DataFile& file) { return "data " + file.name; }

struct Program {
  std::vector<std::string> command;  // argv with placeholders; see command_line.h
  // Added to the executor's environment. Some values may be secrets.
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::string> missing_secrets;  // not set on the server, so the program cannot start
  std::filesystem::path working_directory;   // empty: the executor's
  // Reports are lines of rank 0's output that match this pattern (log_reports.h); empty: reports
  // come over the channel.
  std::string report_pattern;
  // Patterns of log lines that may explain a failure (log_match.h), in order of priority.
  std::vector<std::string> log_patterns;
};

// The resources of one rank on this host.
struct RankSlot {
  int rank = 0;
  int local_rank = 0;
  int cpus = 1;
  std::vector<int> gpus;  // indices of this host's GPUs
  int gpu_percent = 100;  // its share of each of these GPUs
};

// The address at which ranks on other hosts reach this host.
struct HostAddress {
  std::string address;    // IPv4; empty: they cannot reach it
  std::string interface;  // network interface with this address
};

// The addresses at which the ranks of a gang on several hosts meet, from rank 0's executor.
struct SharedRendezvous {
  std::string address;  // of rank 0's host, for MASTER_ADDR
  int master_port = 0;
  std::optional<channel::Rendezvous> rank_zero;  // where rank 0 listens, if known
};

// The files of the trial that the log knows, if a backup was restored since the sweep was created.
struct KnownFiles {
  uint32_t attempts = 0;              // attempts 1 to this number
  std::set<std::string> checkpoints;  // names of their folders
};

// The snapshot that a program comes from.
struct Code {
  RemoteFiles files;
  bool writable = false;
};

// Files that describe the packages of a program. The host installs these before the program starts.
struct EnvironmentFiles {
  std::filesystem::path python;  // a file of requirements, uv.lock or pyproject.toml
  std::filesystem::path wheels;  // a folder of wheels, to install without a network; empty: none
  std::filesystem::path root;    // `python` must be below this folder; empty: anywhere
};

// The container in which the ranks run.
struct Container {
  std::string image;                                  // its name
  std::string engine;                                 // podman, docker, apptainer, or any
  std::optional<ContainerImage> found = {};           // set when the image is on this host
  std::vector<std::filesystem::path> read_only = {};  // copies that the program reads
};

struct GangSpec {
  AttemptId attempt;
  Program program;
  std::vector<NamedValue> config;  // in the order of the sweep file
  uint64_t seed = 0;               // below 2^53
  int world_size = 1;
  std::vector<RankSlot> ranks;  // the ranks on this host, in order
  int node_rank = 0;            // index of this host among the hosts of the gang
  int nodes = 1;                // number of hosts of the gang
  int max_restarts = 0;         // of the trial after failures
  HostAddress host;             // this host
  // The rendezvous, if rank 0 is on another host.
  std::optional<SharedRendezvous> rendezvous;
  std::string time_attr;  // the metric whose value is a report's step; empty: steps are counted
  int64_t milestone = 0;  // at the first step >= this, rank 0 waits for a verdict
  int64_t max_step = 0;   // 0: none; if there is no milestone, rank 0 waits for a verdict here
  int64_t checkpoint_every = 0;
  std::optional<Resume> resume;
  std::optional<RemoteFiles> fetch;  // set if `resume` must be fetched from another host first
  std::optional<Code> code;          // must be fetched first
  std::vector<DataFile> data;        // must be downloaded first
  // Set if an environment must be built first. The paths are absolute, or start at the root of the
  // code.
  std::optional<EnvironmentFiles> environment_files;
  std::optional<Container> container;          // its image must be fetched first
  std::chrono::milliseconds stall_timeout{0};  // 0: never
  std::chrono::milliseconds grace{0};          // from SIGTERM to SIGKILL; 0: SIGKILL at once
  uint64_t identity = 0;              // of the log in which the sweep was created; 0: not known
  std::optional<KnownFiles> known;    // set after the restore of a backup
  std::filesystem::path sweep_dir;    // with the folders of all its trials
  std::filesystem::path attempt_dir;  // logs and the configuration file
  std::filesystem::path checkpoint_dir;
  std::filesystem::path files_dir;      // for any files of the program
  std::filesystem::path work_dir;       // with `code`: the trial's folder with links to the files
  std::filesystem::path set_aside_dir;  // see set_aside.h

  // The folder in which ranks start. Trials share `program`, and so the launcher, but not this
  // folder.
  std::filesystem::path rank_directory;  // empty: the program's working directory

  const std::filesystem::path& RankDirectory() const {
    return rank_directory.empty() ? program.working_directory : rank_directory;
  }
  bool SpansHosts() const { return std::ssize(ranks) < world_size; }
  bool HasRankZero() const { return !ranks.empty() && ranks.front().rank == 0; }
};

}  // namespace attune::gang
