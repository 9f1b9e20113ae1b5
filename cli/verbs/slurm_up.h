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

// How often a verb asks Slurm for the state of its jobs: Slurm sends no event when one ends.
inline constexpr std::chrono::milliseconds kSlurmPollPeriod{500};

// `attune slurm up`, as a person writes it.
struct SlurmUpFlags {
  ServerChoice server;
  std::string executors;  // HOST:PORT at which pilots reach the server; empty: as it says
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

  void AddTo(CLI::App& verb);

 private:
  void AddPilotOptions(CLI::App& verb);
};

// "0..8", or "8", which is the same. kInvalid says what is wrong.
Result<slurm::Limits> ParseNodes(const std::string& text);

// Keeps pilots until it is interrupted or `attune slurm down` asks it to end.
ExitCode SlurmUp(const SlurmUpFlags& flags, Console& console);

}  // namespace attune::cli
