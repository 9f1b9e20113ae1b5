#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "slurm/plan.h"
#include "slurm/tools.h"

namespace attune::slurm {

// Before its time is over a pilot is told to leave. Slurm looks at times every 30 s, and may be up
// to a minute early.
inline constexpr std::chrono::seconds kLeaveBefore{60};
// A pilot that has heard no server for so long ends by itself.
inline constexpr std::chrono::seconds kGiveUpDefault{600};

// What each pilot asks of Slurm; empty and nullopt: what the cluster gives when nothing is said.
struct PilotOptions {
  int nodes = 1;
  std::string partition;
  std::string account;
  std::string qos;
  std::string gres;
  std::string time;               // as sbatch takes it
  std::optional<int> cpus;        // nullopt: a whole node
  std::string memory;             // as sbatch takes it; empty, with a whole node: all of it
  std::vector<std::string> more;  // for sbatch, behind all others
};

// Where pilots find the program and the server.
struct PilotPlaces {
  std::filesystem::path program;     // the `attune` that the nodes run
  std::string server;                // HOST:PORT for executors
  std::filesystem::path token_file;  // with the word that they join with
  std::filesystem::path data_dir;    // of the executors; seen by all nodes
  std::filesystem::path logs;
  std::vector<std::string> labels;  // NAME=VALUE, of the executors
  std::chrono::seconds give_up = kGiveUpDefault;
};

// attune-FLEET-: how the names of a fleet's pilots begin.
std::string PilotPrefix(const std::string& fleet);
// attune-FLEET-NUMBER: the name of the job. That of the executor in it is the same, or, where it
// has several nodes, of the one on each: attune-FLEET-NUMBER.NODE, from 0 on.
std::string PilotName(const std::string& fleet, int64_t number);
// The number in such a name; nullopt: it is another fleet's, or none.
std::optional<int64_t> PilotNumber(const std::string& fleet, std::string_view name);
// The pilot that an executor of this name is in; empty: it is in none of this fleet.
std::string PilotOf(const std::string& fleet, std::string_view executor);

// sbatch's options for one pilot. Only the batch script is signalled before the end of its time:
// it is the executor, which ends its ranks in order, or tells those of its nodes; without `B:`
// Slurm would signal ranks as well. A job of several nodes ends with the first of them that is
// lost: the gangs that it is there for cannot run on the rest.
std::vector<std::string> SbatchOptions(const PilotOptions& options, const PilotPlaces& places,
                                       const std::string& name);

// The batch script of every pilot of a fleet; `script` is where all nodes see it. On one node it
// becomes an executor with what the job was given: its CPUs, its memory, and the GPUs in
// CUDA_VISIBLE_DEVICES, none if the job asked for none. On several it starts one on each with
// `srun`, lets them take leave when it gets SIGTERM, and ends when all have. With the word
// `allocation` behind it it does that in the allocation that it is run in, of however many nodes;
// its executors are then called job-JOB-NODE. The loss of one leaves the others alone; nobody binds
// ranks to CPUs.
std::string PilotScript(const PilotPlaces& places, const std::filesystem::path& script);

// What a pilot in this partition has for gangs, before the first has said so itself.
Room RoomOf(const PilotOptions& options, const Partition& partition);

// What is wrong with these options in this partition; Slurm itself accepts some of it and lets the
// job wait for ever.
Status Check(const PilotOptions& options, const Partition& partition);

}  // namespace attune::slurm
