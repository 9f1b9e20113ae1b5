#include "core/brain/warm_start.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include "core/space/domain.h"
#include "core/space/draw.h"

namespace attune {
namespace {

Error Refusal(SweepId from, const std::string& why) {
  return {ErrorCode::kInvalid, "warm_start: " + ToString(from) + " " + why};
}

std::optional<Error> Foreign(const SweepSpec& spec, SweepId from, const SweepSpec& earlier) {
  const Objective& wanted = spec.objective();
  const auto same = std::ranges::find(earlier.objectives, wanted.metric, &Objective::metric);
  if (same == earlier.objectives.end()) {
    return Refusal(from, "improves " + earlier.objective().metric + ", not " + wanted.metric +
                             "; name a sweep of the same metric");
  }
  if (same->mode != wanted.mode) {
    const bool max = same->mode == Mode::kMax;
    return Refusal(from, std::string(max ? "maximises " : "minimises ") + wanted.metric +
                             ", and this sweep shall " + (max ? "minimise" : "maximise") +
                             " it; name a sweep of the same goal");
  }
  for (const Parameter& parameter : spec.space.parameters()) {
    const bool varies = !std::holds_alternative<ConstantDomain>(parameter.domain);
    if (varies && earlier.space.Find(parameter.name) != nullptr) return std::nullopt;
  }
  return Refusal(from, "has none of this sweep's parameters; name one that varied some of them");
}

// In the new space, or the parameter that it lies outside of.
std::variant<Config, std::string> Moved(const SweepSpec& spec, SweepId from,
                                        const TrialResult& result, std::set<std::string>& drawn) {
  RandomStream random(spec.seed, result.trial, "warm_start/" + ToString(from));
  Config config;
  for (const size_t place : spec.space.order()) {
    const Parameter& parameter = spec.space.parameters()[place];
    if (!spec.space.Active(parameter, config)) continue;
    const auto* constant = std::get_if<ConstantDomain>(&parameter.domain);
    const Value* value = result.config.Find(parameter.name);
    if (value == nullptr && constant == nullptr) {
      drawn.insert(parameter.name);
      config.Set(parameter.name, Draw(parameter.domain, random));
      continue;
    }
    auto admitted = Admit(parameter.domain, value == nullptr ? constant->value : *value);
    if (!admitted.ok()) return parameter.name;
    config.Set(parameter.name, std::move(admitted).value());
  }
  return config;
}

// As Record::Better of searchers.
void Rank(const Objective& objective, std::vector<TrialResult>& results) {
  const auto key = [&](const TrialResult& result) {
    const bool failed = result.failed || !std::isfinite(result.value);
    const double loss = objective.mode == Mode::kMin ? result.value : -result.value;
    return std::tuple(failed, !failed && !result.complete,
                      result.complete || failed ? 0 : -result.step.value, failed ? 0 : loss,
                      result.trial);
  };
  std::ranges::sort(results, {}, key);
}

std::string Text(const WarmStart& start, size_t inside,
                 const std::map<std::string, int64_t>& outside,
                 const std::set<std::string>& drawn) {
  std::string text = std::to_string(start.taken.size()) + " of " + std::to_string(start.results) +
                     " results of " + ToString(start.from);
  if (inside > start.taken.size()) text += ", from the best to the worst";
  for (const auto& [name, count] : outside)
    text += "; " + std::to_string(count) + " outside of " + name;
  std::string names;
  for (const std::string& name : drawn) names += (names.empty() ? "" : ", ") + name;
  if (!names.empty()) text += "; drawn at random where it was absent: " + names;
  return text;
}

}  // namespace

Result<WarmStart> TakeFrom(const SweepSpec& spec, SweepId from, const SweepSpec& earlier,
                           std::vector<TrialResult> results) {
  if (auto foreign = Foreign(spec, from, earlier)) return *foreign;
  if (results.empty()) return Refusal(from, "has no results yet; wait for some");
  WarmStart start{.from = from, .results = std::ssize(results)};
  Rank(spec.objective(), results);
  std::vector<PriorResult> inside;
  std::map<std::string, int64_t> outside;
  std::set<std::string> drawn;
  for (const TrialResult& result : results) {
    auto moved = Moved(spec, from, result, drawn);
    if (auto* config = std::get_if<Config>(&moved)) {
      inside.push_back({.from = {from, result.trial}, .config = std::move(*config)});
    } else {
      ++outside[std::get<std::string>(moved)];
    }
  }
  const size_t most = kMostPrior / std::max<size_t>(spec.warm_start.size(), 1);
  const size_t count = std::min(inside.size(), most);
  for (size_t i = 0; i < count; ++i) {
    PriorResult& taken = start.taken.emplace_back(std::move(inside[i * inside.size() / count]));
    taken.rank = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
  }
  start.text = Text(start, inside.size(), outside, drawn);
  if (start.taken.empty())
    return Refusal(from, "has nothing that lies within this sweep's ranges: " + start.text);
  return start;
}

}  // namespace attune
