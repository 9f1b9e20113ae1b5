#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "cli/commands/command.h"
#include "cli/commands/pilots/pilot_flags.h"
#include "cli/exit_code.h"
#include "pilots/engine.h"
#include "pilots/fleet_folder.h"

namespace attune::cli {

// How often a command asks for the state of pilots or managers: they send no event when they end.
inline constexpr std::chrono::milliseconds kPilotPollPeriod{500};

// The options of `down`.
struct PilotDownFlags {
  std::filesystem::path data_dir = "attune-data";

  void AddTo(CLI::App& command);
};

// The arguments and options of `logs`.
struct PilotLogsFlags {
  std::filesystem::path data_dir = "attune-data";
  std::string pilot;

  void AddTo(CLI::App& command);
};

// Opens the folder of a fleet for `up`, and locks it. Creates a fleet if there is none.
Result<pilots::FleetFolder> OpenForManager(const std::filesystem::path& data_dir,
                                           const pilots::EngineFacts& engine);

// Ends the manager of the fleet and all of its pilots. Locks the folder.
ExitCode EndPilots(pilots::Engine& engine, pilots::FleetFolder& folder, Console& console);

// Prints the pilots of the fleet, their hours, and why waiting gangs get no pilot.
ExitCode ShowPilots(pilots::Engine& engine, const pilots::FleetFolder& folder,
                    const ClientFlags& flags, Console& console);

// The full name of a pilot or of its node, from its number or name. kInvalid if it is not of this
// fleet.
Result<std::string> FindPilotName(const pilots::FleetFolder& folder, const std::string& text,
                                  const pilots::EngineFacts& engine);

}  // namespace attune::cli
