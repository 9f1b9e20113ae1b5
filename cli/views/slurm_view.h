#pragma once

#include <string>
#include <vector>

#include "rest/contract.h"
#include "slurm/hours.h"
#include "slurm/manager.h"

namespace attune::cli {

// What a fleet reports to the server in addition to what its manager sees.
struct FleetFacts {
  std::string fleet;
  std::string partition;
  double poll_seconds = 0;
  slurm::Limits limits;
};
rest::FleetReport MakeReport(const FleetFacts& facts, const slurm::ManagerView& view);

// Without its executors.
rest::Pilot MakePilot(const slurm::Job& job);

rest::Hours MakeHours(const slurm::Hours& hours);
// "GPU-hours allocated 12.00: 10.10 in use, 1.90 idle"; nodes and CPUs if there are no GPUs.
std::vector<std::string> HoursLines(const slurm::Hours& hours);

}  // namespace attune::cli
