#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/client/endpoint.h"
#include "cli/run.h"
#include "slurm/plan.h"

namespace attune::cli {

// How often a command asks Slurm for the state of its jobs: Slurm sends no event when one ends.
inline constexpr std::chrono::milliseconds kSlurmPollPeriod{500};

// The arguments and options of `attune slurm up`.
struct SlurmUpFlags {
  ServerChoice server;
  std::string executors;  // HOST:PORT at which pilots reach the server; empty: the address that the
                          // server reports
  std::filesystem::path shared;
  std::filesystem::path program;
  std::string partition;
  std::string account;
  std::string qos;
  std::string nodes;
  int nodes_per_pilot = 1;
  std::string gres;
  std::string time;
  std::optional<int> cpus;
  std::string memory;
  std::vector<std::string> more;
  std::vector<std::string> labels;
  std::string idle = "5m";
  std::string poll = "5s";
  std::string give_up = "10m";
  std::string rpc_host = "0.0.0.0";
  std::optional<int> port;
  std::optional<int> rpc_port;

  void AddTo(CLI::App& command);

 private:
  void AddPilotOptions(CLI::App& command);
};

// Parses "0..8", or "8", which means the same. kInvalid names --nodes.
Result<slurm::Limits> ParseNodes(const std::string& text);

// Starts and stops pilots until Ctrl-C or `attune slurm down`.
ExitCode SlurmUp(const SlurmUpFlags& flags, Console& console);

}  // namespace attune::cli
