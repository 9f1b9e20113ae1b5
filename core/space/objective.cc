#include "core/space/objective.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attune {

std::string_view Name(Mode mode) {
  switch (mode) {
    case Mode::kMin:
      return "min";
    case Mode::kMax:
      return "max";
  }
  return "unknown";
}

double Objective::ValueIn(const Metrics& metrics) const {
  const auto found = metrics.find(metric);
  return found == metrics.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
}

bool Objective::Better(double a, double b) const {
  if (!std::isfinite(a)) return false;
  if (!std::isfinite(b)) return true;
  return mode == Mode::kMax ? a > b : a < b;
}

bool Constraint::IsMetBy(double value) const {
  return std::isfinite(value) && (!min || value >= *min) && (!max || value <= *max);
}

std::vector<double> ValuesThatCount(const std::vector<Objective>& objectives,
                                    const std::vector<Constraint>& constraints,
                                    const Metrics& metrics) {
  const bool feasible = std::ranges::all_of(constraints, [&](const Constraint& constraint) {
    const auto found = metrics.find(constraint.metric);
    return found != metrics.end() && constraint.IsMetBy(found->second);
  });
  if (!feasible) return {};
  std::vector<double> values;
  for (const Objective& objective : objectives) {
    values.push_back(objective.ValueIn(metrics));
    if (!std::isfinite(values.back())) return {};
  }
  return values;
}

}  // namespace attune
