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

std::string_view Name(ContainerEngine engine) {
  return NameOf(engine, {"any", "podman", "docker", "apptainer"});
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

std::string DataVariable(std::string_view name) {
  std::string variable = "ATTUNE_DATA_";
  for (const char c : name) {
    const bool lower = c >= 'a' && c <= 'z';
    variable += c == '-' || c == '.' ? '_' : lower ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return variable;
}

std::optional<std::vector<std::vector<std::string>>> PatchCombinations(const SearchSpace& space,
                                                                       size_t most) {
  std::vector<std::vector<std::string>> combinations{{}};
  for (const Parameter& parameter : space.parameters()) {
    if (!parameter.patches) continue;
    std::vector<std::string> choices;
    for (const Value& value : std::get<CategoricalDomain>(parameter.domain).values)
      choices.push_back(std::get<std::string>(value));
    // A parameter that may be absent can leave the code unchanged, too.
    const bool has_none = std::ranges::find(choices, kNoPatch) != choices.end();
    if (!parameter.when.empty() && !has_none) choices.emplace_back(kNoPatch);
    std::vector<std::vector<std::string>> longer;
    for (const auto& combination : combinations) {
      for (const std::string& choice : choices) {
        longer.push_back(combination);
        if (choice != kNoPatch) longer.back().push_back(choice);
      }
      if (longer.size() > most + 1) return std::nullopt;
    }
    combinations = std::move(longer);
  }
  std::ranges::sort(combinations);
  const auto repeated = std::ranges::unique(combinations);
  combinations.erase(repeated.begin(), repeated.end());
  std::erase_if(combinations, [](const auto& combination) { return combination.empty(); });
  return combinations;
}

std::vector<std::string> PatchesOf(const SearchSpace& space, const Config& config) {
  std::vector<std::string> patches;
  for (const Parameter& parameter : space.parameters()) {
    if (!parameter.patches) continue;
    const Value* choice = config.Find(parameter.name);
    const auto* path = choice == nullptr ? nullptr : std::get_if<std::string>(choice);
    if (path != nullptr && *path != kNoPatch) patches.push_back(*path);
  }
  return patches;
}

std::string CodeDigestOf(const SweepSpec& spec, const Config& config) {
  const auto& code = spec.program.code;
  if (!code) return "";
  const std::vector<std::string> patches = PatchesOf(spec.space, config);
  if (patches.empty()) return code->digest;
  const auto found = std::ranges::find(code->patched, patches, &PatchedCode::patches);
  return found == code->patched.end() ? "" : found->digest;
}

std::optional<Step> StepOfTime(double value) {
  constexpr double kExactMax = 9007199254740991;  // 2^53 - 1
  if (!(value >= 1 && value <= kExactMax)) return std::nullopt;
  return Step(static_cast<int64_t>(std::floor(value)));
}

}  // namespace attune
