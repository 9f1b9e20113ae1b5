#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/pilots/pilot_flags.h"
#include "cli/run.h"

namespace attune::cli {

// Of FleetFolder::Fleet: the folder that all nodes see, with logs, script and executors' data.
inline constexpr const char* kSharedSetting = "shared";

// The arguments and options of `attune slurm up`.
struct SlurmUpFlags : PilotFlags {
  std::filesystem::path shared;
  std::filesystem::path program;
  std::string partition;
  std::string account;
  std::string qos;
  std::string gres;
  std::string time;
  std::optional<int> cpus;
  std::string memory;
  std::vector<std::string> more;

  void AddTo(CLI::App& command);

 private:
  void AddJobOptions(CLI::App& command);
};

// Starts and stops pilots until Ctrl-C or `attune slurm down`.
ExitCode SlurmUp(const SlurmUpFlags& flags, Console& console);

}  // namespace attune::cli
