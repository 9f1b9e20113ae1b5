#include "core/log/sweep_spec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace attune {

namespace {

template <class Choice>
using ChoiceNames = std::array<std::pair<Choice, std::string_view>, 3>;  // in the order of the enum

constexpr ChoiceNames<PlacementPolicy> kPlacementPolicies{{
    {PlacementPolicy::kPack, "pack"},
    {PlacementPolicy::kSpread, "spread"},
    {PlacementPolicy::kOneHost, "one_host"},
}};

constexpr ChoiceNames<GrowthPolicy> kGrowthPolicies{{
    {GrowthPolicy::kOldest, "oldest"},
    {GrowthPolicy::kBest, "best"},
    {GrowthPolicy::kEven, "even"},
}};

constexpr ChoiceNames<LogAction> kLogActions{{
    {LogAction::kRetryElsewhere, "retry_elsewhere"},
    {LogAction::kExcludeHost, "exclude_host"},
    {LogAction::kFail, "fail"},
}};

template <class Choice>
std::string_view NameOf(Choice choice, const ChoiceNames<Choice>& names) {
  return names[static_cast<size_t>(choice)].second;
}

template <class Choice>
std::optional<Choice> Named(std::string_view name, const ChoiceNames<Choice>& names) {
  for (const auto& [choice, known] : names) {
    if (known == name) return choice;
  }
  return std::nullopt;
}

}  // namespace

bool SetGpus(const Value& gpus, GangSpec& gang) {
  double number = -1;
  if (const auto* whole = std::get_if<int64_t>(&gpus)) number = static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&gpus)) number = *real;
  const double percent = std::round(number * 100);
  if (percent >= 1 && percent < 100 && std::abs(number * 100 - percent) < 1e-9) {
    gang.per_worker.gpus = 1;
    gang.gpu_percent = static_cast<int>(percent);
    return true;
  }
  if (number != std::floor(number) || number < 0 || number > std::numeric_limits<int>::max())
    return false;
  gang.per_worker.gpus = static_cast<int>(number);
  gang.gpu_percent = 100;
  return true;
}

std::string_view Name(PlacementPolicy policy) { return NameOf(policy, kPlacementPolicies); }
std::optional<PlacementPolicy> PlacementNamed(std::string_view name) {
  return Named(name, kPlacementPolicies);
}

std::string_view Name(GrowthPolicy policy) { return NameOf(policy, kGrowthPolicies); }
std::optional<GrowthPolicy> GrowthNamed(std::string_view name) {
  return Named(name, kGrowthPolicies);
}

std::string_view Name(LogAction action) { return NameOf(action, kLogActions); }
std::optional<LogAction> LogActionNamed(std::string_view name) { return Named(name, kLogActions); }

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
