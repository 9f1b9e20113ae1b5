#include "cli/views/pilots_view.h"

#include <unistd.h>

#include <array>
#include <utility>

#include "cli/text/numbers.h"

namespace attune::cli {
namespace {

rest::Amount MakeAmount(const pilots::Amount& amount) {
  return {.nodes = amount.nodes, .cpus = amount.cpus, .gpus = amount.gpus};
}

std::string HoursLine(const char* what, const pilots::Hours& hours,
                      double pilots::Amount::*member) {
  std::string text = std::string(what) + "-hours allocated " +
                     FormatHundredths(hours.held.*member) + ": " +
                     FormatHundredths(hours.in_use.*member) + " in use, " +
                     FormatHundredths(hours.idle().*member) + " idle";
  if (hours.unseen.*member > 0)
    text += ", " + FormatHundredths(hours.unseen.*member) + " unobserved";
  return text;
}

}  // namespace

rest::Pilot MakePilot(const pilots::Job& job) {
  return {.name = job.name,
          .job = job.id,
          .state = job.state,
          .reason = job.reason,
          .nodes = job.nodes,
          .node_list = job.node,
          .end_time = job.ends,
          .ran_seconds = static_cast<double>(job.ran.count()),
          .executors = {}};
}

rest::Hours MakeHours(const pilots::Hours& hours) {
  return {.allocated = MakeAmount(hours.held),
          .in_use = MakeAmount(hours.in_use),
          .idle = MakeAmount(hours.idle()),
          .unobserved = MakeAmount(hours.unseen)};
}

std::vector<std::string> HoursLines(const pilots::Hours& hours) {
  if (hours.held.nodes == 0) return {};
  if (hours.held.gpus > 0) return {HoursLine("GPU", hours, &pilots::Amount::gpus)};
  return {HoursLine("node", hours, &pilots::Amount::nodes),
          HoursLine("CPU", hours, &pilots::Amount::cpus)};
}

rest::FleetReport MakeReport(const FleetFacts& facts, const pilots::ManagerView& view) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  rest::FleetReport report{.fleet = facts.fleet,
                           .system = facts.system,
                           .host = host.data(),
                           .partition = facts.partition,
                           .poll_seconds = facts.poll_seconds,
                           .nodes_min = facts.limits.nodes_min,
                           .nodes_max = facts.limits.nodes_max,
                           .nodes_per_pilot = facts.limits.nodes_per_pilot,
                           .pilots = {},
                           .blockers = {},
                           .hours = MakeHours(view.hours)};
  for (const pilots::Job& job : view.jobs) {
    rest::Pilot pilot = MakePilot(job);
    for (const pilots::Host& each : view.hosts)
      if (each.pilot == job.name) pilot.executors.push_back(each.name);
    report.pilots.push_back(std::move(pilot));
  }
  for (const pilots::Hindrance& each : view.hindrances)
    report.blockers.push_back({.sweep = each.sweep, .text = each.text});
  return report;
}

}  // namespace attune::cli
