#include "core/log/sweep_spec.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace attune {

namespace {

constexpr std::array<std::pair<GrowthPolicy, std::string_view>, 3> kGrowthPolicies{{
    {GrowthPolicy::kOldest, "oldest"},
    {GrowthPolicy::kBest, "best"},
    {GrowthPolicy::kEven, "even"},
}};

constexpr std::array<std::pair<LogAction, std::string_view>, 3> kLogActions{{
    {LogAction::kRetryElsewhere, "retry_elsewhere"},
    {LogAction::kExcludeHost, "exclude_host"},
    {LogAction::kFail, "fail"},
}};

}  // namespace

std::string_view Name(LogAction action) { return kLogActions[static_cast<size_t>(action)].second; }

std::optional<LogAction> LogActionNamed(std::string_view name) {
  for (const auto& [action, known] : kLogActions) {
    if (known == name) return action;
  }
  return std::nullopt;
}

std::string_view Name(GrowthPolicy policy) {
  return kGrowthPolicies[static_cast<size_t>(policy)].second;
}

std::optional<GrowthPolicy> GrowthNamed(std::string_view name) {
  for (const auto& [policy, known] : kGrowthPolicies) {
    if (known == name) return policy;
  }
  return std::nullopt;
}

std::vector<std::string> SweepSpec::ReportedMetrics() const {
  std::vector<std::string> metrics;
  for (const Objective& each : objectives) metrics.push_back(each.metric);
  for (const Constraint& each : constraints) metrics.push_back(each.metric);
  const auto add = [&](const std::string& metric) {
    if (std::ranges::find(metrics, metric) == metrics.end()) metrics.push_back(metric);
  };
  if (stop.plateau) add(stop.plateau->metric.metric);
  for (const Threshold& each : stop.thresholds) add(each.metric);
  if (!time_attr.empty()) add(time_attr);
  return metrics;
}

std::optional<Step> StepOfTime(double value) {
  constexpr double kExactMax = 9007199254740991;  // 2^53 - 1
  if (!(value >= 1 && value <= kExactMax)) return std::nullopt;
  return Step(static_cast<int64_t>(std::floor(value)));
}

}  // namespace attune
