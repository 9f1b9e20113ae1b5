#include "cli/views/fleet_view.h"

#include <optional>

#include "cli/text/numbers.h"
#include "cli/text/table.h"
#include "cli/text/width.h"

namespace attune::cli {
namespace {

std::string PercentText(std::optional<double> share) {
  return share.has_value() ? FormatPercent(*share) : "";
}

void AddShares(Table& table, const std::string& executor, const std::string& slots,
               const rest::OccupancyShares& shares) {
  table.Add({executor, slots, PercentText(shares.hour), PercentText(shares.day),
             PercentText(shares.joined)});
}

std::string GangText(const rest::QueuedGang& gang) {
  std::string each = FormatNumber(gang.gpus_per_worker) + " GPU";
  if (gang.gpus_per_worker == 0) each = std::to_string(gang.cpus_per_worker) + " CPU";
  return gang.workers == 1 ? each : std::to_string(gang.workers) + " x " + each;
}

std::string TrialText(const rest::QueuedGang& gang) {
  if (gang.trial.has_value()) return gang.sweep + '/' + std::to_string(*gang.trial);
  if (gang.gangs == 1) return gang.sweep + " new";
  return gang.sweep + ' ' + std::to_string(gang.gangs) + " new";
}

}  // namespace

std::vector<std::string> OccupancyTable(const rest::OccupancyList& list, const Style& style,
                                        int width) {
  Table table({{"EXECUTOR"}, {"SLOTS"}, {"HOUR", true}, {"DAY", true}, {"SINCE JOIN", true}});
  for (const rest::ExecutorOccupancy& executor : list.executors) {
    const std::string name = Clean(executor.executor);
    AddShares(table, name, executor.gpus.empty() ? "CPUs" : "all GPUs", executor.share);
    for (size_t gpu = 0; gpu < executor.gpus.size(); ++gpu)
      AddShares(table, name, "GPU " + std::to_string(gpu), executor.gpus[gpu]);
  }
  return table.Lines(style, width);
}

std::vector<std::string> QueueTable(const std::vector<rest::QueuedGang>& gangs, const Style& style,
                                    int width) {
  Table table({{"PLACE", true},
               {"TRIAL"},
               {"NEEDS"},
               {"PRIORITY", true},
               {"SHARE", true},
               {"OWNER"},
               {"REASON"}});
  for (const rest::QueuedGang& gang : gangs) {
    table.Add({gang.ready ? std::to_string(gang.place) : "", TrialText(gang), GangText(gang),
               std::to_string(gang.priority), PercentText(gang.share), Clean(gang.owner),
               Clean(gang.reason)});
  }
  return table.Lines(style, width);
}

}  // namespace attune::cli
