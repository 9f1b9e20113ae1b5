#include "core/log/sweep_spec.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

namespace attune {

namespace {

template <class Choice>
std::string_view NameOf(Choice choice, std::initializer_list<std::string_view> names) {
  const auto index = static_cast<size_t>(choice);
  return index < names.size() ? names.begin()[index] : "unknown";
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

std::string_view Name(PlacementPolicy policy) {
  return NameOf(policy, {"pack", "spread", "one_host"});
}
std::string_view Name(GrowthPolicy policy) { return NameOf(policy, {"oldest", "best", "even"}); }
std::string_view Name(LogAction action) {
  return NameOf(action, {"retry_elsewhere", "exclude_host", "fail"});
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
