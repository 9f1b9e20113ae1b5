#pragma once

#include <string>
#include <vector>

#include "cli/json.h"
#include "slurm/hours.h"
#include "slurm/keeper.h"

namespace attune::cli {

// What a keeper reports to the server (docs/rest-api.md, Pilots), in addition to what it has seen.
struct FleetFacts {
  std::string fleet;
  std::string partition;
  double poll_seconds = 0;
  slurm::Limits limits;
};
Json ReportJson(const FleetFacts& facts, const slurm::KeeperView& view);

// `executors`: a text about those that have joined.
Json PilotJson(const slurm::Job& job, Json executors);

// {"held": {"nodes": 1.5, "cpus": 96, "gpus": 12}, "in_use": …, "idle": …, "unseen": …}
Json HoursJson(const slurm::Hours& hours);
// "GPU-hours held 12.00: 10.10 in use, 1.90 idle"; nodes and CPUs if there are no GPUs.
std::vector<std::string> HoursLines(const slurm::Hours& hours);

}  // namespace attune::cli
