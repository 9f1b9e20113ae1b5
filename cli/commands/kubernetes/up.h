#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>

#include "cli/commands/pilots/pilot_flags.h"
#include "cli/run.h"

namespace attune::cli {

// The options of `attune kubernetes up`.
struct KubernetesUpFlags : PilotFlags {
  std::string name_space;
  std::string context;
  std::filesystem::path template_file;
  std::string owner;  // KIND/NAME of an object that owns the fleet

  void AddTo(CLI::App& command);
};

// Starts and stops pilots until Ctrl-C or `attune kubernetes down`.
ExitCode KubernetesUp(const KubernetesUpFlags& flags, Console& console);

}  // namespace attune::cli
