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

#include "executor/gang/words.h"

namespace attune::gang {

// One run of a trial, fenced by its lease epoch.
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

// A checkpoint, wherever it lies.
struct CheckpointName {
  uint64_t sweep = 0;
  uint32_t trial = 0;
  uint32_t attempt = 0;
  int64_t step = 0;
};

// As people write it: `s3/17/2-900`.
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

// A checkpoint that lies on another host, and who can be asked for it beside the server.
struct FarCheckpoint {
  CheckpointName name;
  std::string folder;  // its, among those of its trial
  std::vector<PieceServer> servers;
};

struct Program {
  std::vector<std::string> command;  // argv with its placeholders; see command_line.h
  // Added to the executor's own. Some values may be secrets.
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::string> missing_secrets;  // that have no value on the server: it cannot start
  std::filesystem::path working_directory;   // empty: the executor's
  // Reports are lines that rank 0 prints, as this says (log_reports.h); empty: they are not.
  std::string report_pattern;
  std::vector<std::string> log_patterns;  // that a failure is looked at for (log_match.h), in order
};

// What one rank occupies on this host.
struct RankSlot {
  int rank = 0;
  int local_rank = 0;
  int cpus = 1;
  std::vector<int> gpus;  // indices of this host's GPUs
  int gpu_percent = 100;  // what it has of each of them
};

// How this host is reached by ranks of other hosts.
struct HostAddress {
  std::string address;    // IPv4; empty: it is not
  std::string interface;  // that has the address
};

// Where the ranks of a gang over several hosts meet, as the executor of rank 0 says.
struct SharedRendezvous {
  std::string address;  // of its host, for MASTER_ADDR
  int master_port = 0;
  std::optional<channel::Rendezvous> rank_zero;  // where it listens, once it has said so
};

// What the log knows of the trial's folder, if a backup was restored since the sweep was created.
struct KnownFiles {
  uint32_t attempts = 0;              // so many, from 1
  std::set<std::string> checkpoints;  // their folders
};

struct GangSpec {
  AttemptId attempt;
  Program program;
  std::vector<NamedValue> config;  // in the order of the sweep file
  uint64_t seed = 0;               // below 2^53
  int world_size = 1;
  std::vector<RankSlot> ranks;  // those on this host
  int node_rank = 0;            // of this host among those of the gang
  int nodes = 1;                // hosts that the gang is on
  int max_restarts = 0;         // of the trial, after its failures
  HostAddress host;             // this one
  // Of a gang over several hosts: where it meets, if rank 0 is on another than this.
  std::optional<SharedRendezvous> rendezvous;
  std::string time_attr;  // the metric whose value is a report's step; empty: steps are counted
  int64_t milestone = 0;  // at the first step >= this, rank 0 waits for a verdict
  int64_t max_step = 0;   // 0: none; reached like a milestone where there is no other
  int64_t checkpoint_every = 0;
  std::optional<Resume> resume;
  std::optional<FarCheckpoint> fetch;          // that is `resume`, and has to come here first
  std::chrono::milliseconds stall_timeout{0};  // 0: never
  std::chrono::milliseconds grace{0};          // from SIGTERM to SIGKILL; 0: SIGKILL at once
  uint64_t identity = 0;                       // of the log that the sweep is of; 0: not known
  std::optional<KnownFiles> known;             // see there
  std::filesystem::path sweep_dir;             // of all of its trials
  std::filesystem::path attempt_dir;           // logs and the configuration's file
  std::filesystem::path checkpoint_dir;
  std::filesystem::path files_dir;      // where the program may leave what it likes
  std::filesystem::path set_aside_dir;  // set_aside.h

  bool Spans() const { return std::ssize(ranks) < world_size; }
  bool HasRankZero() const { return !ranks.empty() && ranks.front().rank == 0; }
};

}  // namespace attune::gang
