#pragma once

#include <string>

#include "cli/commands/pilots/pilot_flags.h"
#include "cli/commands/pilots/pilot_server.h"
#include "cli/exit_code.h"
#include "cli/run.h"
#include "pilots/engine.h"
#include "pilots/fleet_folder.h"
#include "pilots/hours.h"
#include "pilots/plan.h"

namespace attune::cli {

// A fleet that is ready to start. All members must outlive KeepPilots().
struct Fleet {
  pilots::Engine& engine;
  pilots::FleetFolder& folder;  // locked
  pilots::HoursBook& hours;
  const ReachableServer& server;
  const PilotFlags& flags;
  PilotSettings settings;
  pilots::Resources node_resources;  // of a pilot's node, until a pilot has joined
  std::string place;                 // the partition or the namespace
};

// Starts and stops pilots until Ctrl-C or `down`. Submits pilots as soon as a gang begins to wait.
ExitCode KeepPilots(const Fleet& fleet, Console& console);

}  // namespace attune::cli
