#pragma once

#include <string>
#include <vector>

#include "pilots/engine.h"
#include "pilots/hours.h"
#include "pilots/manager.h"
#include "rest/contract.h"

namespace attune::cli {

// The part of a fleet's report to the server that stays the same.
struct FleetFacts {
  std::string fleet;
  std::string system;     // the engine's name
  std::string partition;  // or namespace
  double poll_seconds = 0;
  pilots::Limits limits;
};
rest::FleetReport MakeReport(const FleetFacts& facts, const pilots::ManagerView& view);

// Without its executors.
rest::Pilot MakePilot(const pilots::Job& job);

rest::Hours MakeHours(const pilots::Hours& hours);
// "GPU-hours allocated 12.00: 10.10 in use, 1.90 idle"; nodes and CPUs if there are no GPUs.
std::vector<std::string> HoursLines(const pilots::Hours& hours);

}  // namespace attune::cli
