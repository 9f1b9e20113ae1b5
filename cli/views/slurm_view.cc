#include "cli/views/slurm_view.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <utility>

namespace attune::cli {
namespace {

Json AmountJson(const slurm::Amount& amount) {
  return {{"nodes", amount.nodes}, {"cpus", amount.cpus}, {"gpus", amount.gpus}};
}

std::string Rounded(double hours) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.2f", hours);
  return text.data();
}

std::string Line(const char* what, const slurm::Hours& hours, double slurm::Amount::*of) {
  std::string text = std::string(what) + "-hours held " + Rounded(hours.held.*of) + ": " +
                     Rounded(hours.in_use.*of) + " in use, " + Rounded(hours.idle().*of) + " idle";
  if (hours.unseen.*of > 0) text += ", " + Rounded(hours.unseen.*of) + " while no keeper looked";
  return text;
}

}  // namespace

Json PilotJson(const slurm::Job& job, Json executors) {
  return {{"name", job.name},
          {"job", job.id},
          {"state", job.state},
          {"reason", job.reason},
          {"nodes", job.nodes},
          {"node", job.node},
          {"ends", job.ends},
          {"ran_seconds", job.ran.count()},
          {"executors", std::move(executors)}};
}

Json HoursJson(const slurm::Hours& hours) {
  return {{"held", AmountJson(hours.held)},
          {"in_use", AmountJson(hours.in_use)},
          {"idle", AmountJson(hours.idle())},
          {"unseen", AmountJson(hours.unseen)}};
}

std::vector<std::string> HoursLines(const slurm::Hours& hours) {
  if (hours.held.nodes == 0) return {};
  if (hours.held.gpus > 0) return {Line("GPU", hours, &slurm::Amount::gpus)};
  return {Line("node", hours, &slurm::Amount::nodes), Line("CPU", hours, &slurm::Amount::cpus)};
}

Json ReportJson(const FleetFacts& facts, const slurm::KeeperView& view) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  Json pilots = Json::array();
  for (const slurm::Job& job : view.jobs) {
    Json executors = Json::array();
    for (const slurm::Host& each : view.hosts)
      if (each.pilot == job.name) executors.push_back(each.name);
    pilots.push_back(PilotJson(job, std::move(executors)));
  }
  Json hindrances = Json::array();
  for (const slurm::Hindrance& each : view.hindrances)
    hindrances.push_back({{"sweep", each.sweep}, {"text", each.text}});
  return {{"fleet", facts.fleet},
          {"system", "Slurm"},
          {"host", host.data()},
          {"partition", facts.partition},
          {"poll_seconds", facts.poll_seconds},
          {"nodes_min", facts.limits.nodes_min},
          {"nodes_max", facts.limits.nodes_max},
          {"nodes_per_pilot", facts.limits.nodes_per_pilot},
          {"pilots", std::move(pilots)},
          {"hindrances", std::move(hindrances)},
          {"hours", HoursJson(view.hours)}};
}

}  // namespace attune::cli
