#include "cli/commands/pilots/situation.h"

#include <algorithm>
#include <set>
#include <string>

#include "cli/json.h"

namespace attune::cli {
namespace {

Requirements RequirementsOf(const rest::Demand& demand) {
  Requirements required;
  for (const auto& [name, values] : demand.requires_.items()) {
    if (values.is_string()) required[name].insert(values.get<std::string>());
    if (!values.is_array()) continue;
    for (const Json& value : values)
      if (value.is_string()) required[name].insert(value.get<std::string>());
  }
  return required;
}

pilots::GangDemand MakeGangDemand(const rest::Demand& demand,
                                  const std::vector<rest::Executor>& executors,
                                  const Labels& labels) {
  const Requirements required = RequirementsOf(demand);
  std::set<std::string> unsuitable_executors;
  for (const rest::Executor& executor : executors) {
    if (!Matches(required, executor.labels)) unsuitable_executors.insert(executor.name);
  }
  // Gangs that need only a share of a GPU use one GPU together.
  const int64_t per_gpu = 100 / std::clamp<int64_t>(demand.gpu_percent.value_or(100), 1, 100);
  return {.sweep = demand.sweep,
          .gangs = static_cast<int>((demand.gangs + per_gpu - 1) / per_gpu),
          .workers = static_cast<int>(demand.workers),
          .min_workers = static_cast<int>(demand.min_workers),
          .worker = {.cpus = static_cast<int>(demand.cpus_per_worker),
                     .gpus = static_cast<int>(demand.gpus_per_worker),
                     .memory_bytes = demand.memory_per_worker},
          .missing_labels = Matches(required, labels) ? "" : ToString(required),
          .excluded_executors = std::move(unsuitable_executors)};
}

}  // namespace

Result<pilots::Situation> ReadSituation(Api& api, const Labels& labels) {
  pilots::Situation situation;
  const auto demand = api.Demand();
  if (!demand.ok()) return demand.error();
  const auto executors = api.Executors();
  if (!executors.ok()) return executors.error();
  for (const rest::Demand& each : demand->demand)
    situation.demands.push_back(MakeGangDemand(each, executors->executors, labels));
  for (const rest::Executor& each : executors->executors) {
    if (each.state == "lost") continue;
    situation.hosts.push_back({.name = each.name,
                               .total = {.cpus = static_cast<int>(each.cpus),
                                         .gpus = static_cast<int>(each.gpus),
                                         .memory_bytes = each.memory_bytes},
                               .free = {.cpus = static_cast<int>(each.cpus_free),
                                        .gpus = static_cast<int>(each.gpus_free),
                                        .memory_bytes = each.memory_free_bytes},
                               .takes_gangs = each.state == "online"});
  }
  return situation;
}

}  // namespace attune::cli
