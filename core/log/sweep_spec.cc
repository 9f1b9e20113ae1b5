#include "core/log/sweep_spec.h"

namespace attune {

std::vector<std::string> SweepSpec::ReportedMetrics() const {
  std::vector<std::string> metrics;
  for (const Objective& each : objectives) metrics.push_back(each.metric);
  for (const Constraint& each : constraints) metrics.push_back(each.metric);
  return metrics;
}

}  // namespace attune
