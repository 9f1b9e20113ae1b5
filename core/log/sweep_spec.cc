#include "core/log/sweep_spec.h"

#include <algorithm>

namespace attune {

std::vector<std::string> SweepSpec::ReportedMetrics() const {
  std::vector<std::string> metrics;
  for (const Objective& each : objectives) metrics.push_back(each.metric);
  for (const Constraint& each : constraints) metrics.push_back(each.metric);
  const auto add = [&](const std::string& metric) {
    if (std::ranges::find(metrics, metric) == metrics.end()) metrics.push_back(metric);
  };
  if (stop.plateau) add(stop.plateau->metric.metric);
  for (const Threshold& each : stop.thresholds) add(each.metric);
  return metrics;
}

}  // namespace attune
