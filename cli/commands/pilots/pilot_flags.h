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
#include "pilots/plan.h"

namespace attune::cli {

// The options of `up` that all engines share.
struct PilotFlags {
  ServerChoice server;
  std::string executors;  // HOST:PORT at which pilots reach the server; empty: the address that the
                          // server reports
  std::string nodes;
  int nodes_per_pilot = 1;
  std::vector<std::string> labels;
  std::string idle = "5m";
  std::string poll = "5s";
  std::string give_up = "10m";
  std::string rpc_host = "0.0.0.0";
  std::optional<int> port;
  std::optional<int> rpc_port;

  void AddSizeOptions(CLI::App& command);
  // `engine`: its name, for the help text.
  void AddManagerOptions(CLI::App& command, const std::string& engine);
  void AddServerOptions(CLI::App& command);
};

// The values of these options.
struct PilotSettings {
  pilots::Limits limits;
  std::chrono::milliseconds idle{};
  std::chrono::milliseconds poll{};
  std::chrono::seconds give_up{};
  Labels labels;
};

// kInvalid names the wrong option.
Result<PilotSettings> CheckPilotFlags(const PilotFlags& flags);

// Parses "0..8", or "8", which means the same. kInvalid names --nodes.
Result<pilots::Limits> ParseNodes(const std::string& text);

// Adds --data-dir, the data folder of the server.
void AddDataDir(CLI::App& command, std::filesystem::path& data_dir);

}  // namespace attune::cli
