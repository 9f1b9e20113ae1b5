#include "core/brain/warm_start.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include "base/result.h"
#include "core/space/domain.h"
#include "core/space/draw.h"
#include "core/space/nondominated_sort.h"

namespace attune {
namespace {

Error Refusal(SweepId from, const std::string& why) {
  return {ErrorCode::kInvalid, "warm_start: " + ToString(from) + " " + why};
}

// The error if the earlier sweep does not improve this metric in the same direction.
std::optional<Error> ForeignMetric(const Objective& wanted, SweepId from,
                                   const std::vector<Objective>& improved) {
  const auto same = std::ranges::find(improved, wanted.metric, &Objective::metric);
  if (same == improved.end()) {
    std::string metrics;
    for (const Objective& each : improved) metrics += (metrics.empty() ? "" : ", ") + each.metric;
    return Refusal(from, "optimizes " + metrics + ", not " + wanted.metric +
                             "; name a sweep with the same metric");
  }
  if (same->mode == wanted.mode) return std::nullopt;
  const bool max = same->mode == Mode::kMax;
  return Refusal(from, std::string(max ? "maximizes " : "minimizes ") + wanted.metric +
                           ", but this sweep " + (max ? "minimizes" : "maximizes") +
                           " it; name a sweep with the same mode");
}

std::optional<Error> WhyForeign(const SweepSpec& spec, SweepId from, const SweepSpec& earlier) {
  for (const Objective& wanted : spec.objectives) {
    if (auto error = ForeignMetric(wanted, from, earlier.objectives)) return error;
  }
  for (const Parameter& parameter : spec.space.parameters()) {
    const bool varies = !std::holds_alternative<ConstantDomain>(parameter.domain);
    if (varies && earlier.space.Find(parameter.name) != nullptr) return std::nullopt;
  }
  return Refusal(from,
                 "has none of this sweep's parameters; name a sweep that varies some of them");
}

// The configuration of the result in the new space, or the name of a parameter that is out of
// range.
std::variant<Config, std::string> MoveToSpace(const SweepSpec& spec, SweepId from,
                                              const TrialResult& result,
                                              std::set<std::string>& drawn) {
  RandomStream random(spec.seed, result.trial, "warm_start/" + ToString(from));
  Config config;
  for (const size_t place : spec.space.order()) {
    const Parameter& parameter = spec.space.parameters()[place];
    if (!spec.space.IsActive(parameter, config)) continue;
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

// A result with its sort keys; small is good.
struct Candidate {
  // (failed, violates a constraint, stopped early, negated step if stopped early)
  std::tuple<bool, bool, bool, int64_t> standing;
  std::vector<double> losses;  // empty if it failed
  TrialResult result;
};

// A constraint on a metric that the earlier sweep has not measured counts as satisfied.
bool IsOutside(const std::vector<Constraint>& constraints, const Metrics& metrics) {
  return std::ranges::any_of(constraints, [&](const Constraint& constraint) {
    const auto found = metrics.find(constraint.metric);
    return found != metrics.end() && !constraint.IsMetBy(found->second);
  });
}

Candidate CandidateOf(const SweepSpec& spec, TrialResult result) {
  const std::vector<Objective>& objectives = spec.objectives;
  std::vector<double> losses = ValuesThatCount(objectives, {}, result.metrics);
  if (result.failed || losses.empty()) return {{true, false, false, 0}, {}, std::move(result)};
  for (size_t i = 0; i < losses.size(); ++i) {
    if (objectives[i].mode == Mode::kMax) losses[i] = -losses[i];
  }
  const int64_t behind = result.complete ? 0 : -result.step.value;
  const bool outside = IsOutside(spec.constraints, result.metrics);
  return {{false, outside, !result.complete, behind}, std::move(losses), std::move(result)};
}

// The results in the same order as Record::Better and BestOf of searchers give.
std::vector<TrialResult> RankResults(const SweepSpec& spec, std::vector<TrialResult> results) {
  std::vector<Candidate> candidates;
  for (TrialResult& result : results) candidates.push_back(CandidateOf(spec, std::move(result)));
  std::ranges::sort(candidates, {}, [](const Candidate& candidate) {
    return std::tie(candidate.standing, candidate.losses, candidate.result.trial);
  });
  std::vector<TrialResult> ranked;
  for (auto begin = candidates.begin(); begin != candidates.end();) {
    const auto end = std::find_if(begin, candidates.end(), [&](const Candidate& candidate) {
      return candidate.standing != begin->standing;
    });
    const auto count = static_cast<size_t>(end - begin);
    std::vector<uint32_t> order(count);
    std::iota(order.begin(), order.end(), uint32_t{0});
    const size_t objectives = spec.objectives.size();
    if (objectives > 1 && !begin->losses.empty()) {
      std::vector<double> losses;  // row after row
      for (auto candidate = begin; candidate != end; ++candidate)
        losses.insert(losses.end(), candidate->losses.begin(), candidate->losses.end());
      order = NondominatedSort(losses, objectives, count, FrontOrder::kHypervolume);
    }
    for (const uint32_t place : order) ranked.push_back(std::move(begin[place].result));
    begin = end;
  }
  return ranked;
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
  if (!names.empty()) text += "; values drawn at random if absent: " + names;
  return text;
}

}  // namespace

Result<WarmStart> TakeResults(const SweepSpec& spec, SweepId from, const SweepSpec& earlier,
                              std::vector<TrialResult> results) {
  if (auto foreign = WhyForeign(spec, from, earlier)) return *foreign;
  if (results.empty()) return Refusal(from, "has no results yet; wait for its first results");
  WarmStart start{.from = from, .results = std::ssize(results)};
  std::vector<PriorResult> inside;
  std::map<std::string, int64_t> outside;
  std::set<std::string> drawn;
  for (const TrialResult& result : RankResults(spec, std::move(results))) {
    auto moved = MoveToSpace(spec, from, result, drawn);
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
    return Refusal(from, "has no results within this sweep's ranges: " + start.text);
  return start;
}

}  // namespace attune
