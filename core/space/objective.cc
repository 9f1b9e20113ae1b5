#include "core/space/objective.h"

#include <algorithm>
#include <cmath>

namespace attune {

bool Objective::Better(double a, double b) const {
  if (!std::isfinite(a)) return false;
  if (!std::isfinite(b)) return true;
  return mode == Mode::kMax ? a > b : a < b;
}

bool Constraint::Holds(double value) const {
  return std::isfinite(value) && (!min || value >= *min) && (!max || value <= *max);
}

std::vector<double> ValuesThatCount(const std::vector<Objective>& objectives,
                                    const std::vector<Constraint>& constraints,
                                    const Metrics& metrics) {
  const bool feasible = std::ranges::all_of(constraints, [&](const Constraint& constraint) {
    const auto found = metrics.find(constraint.metric);
    return found != metrics.end() && constraint.Holds(found->second);
  });
  if (!feasible) return {};
  std::vector<double> values;
  for (const Objective& objective : objectives) {
    const auto found = metrics.find(objective.metric);
    if (found == metrics.end() || !std::isfinite(found->second)) return {};
    values.push_back(found->second);
  }
  return values;
}

}  // namespace attune
