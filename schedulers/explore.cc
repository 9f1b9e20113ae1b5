#include "schedulers/explore.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/base/random.h"
#include "core/space/domain.h"
#include "core/space/draw.h"

namespace attune::schedulers {
namespace {

// The value in a domain that an edit may have changed; nullopt: the domain lacks it.
std::optional<Value> TryAdmit(const Domain& domain, const Value& value) {
  if (auto admitted = Admit(domain, value); admitted.ok()) return std::move(admitted).value();
  return std::nullopt;
}

// The value one step from the place, or at the place if it is at the end.
Value StepFrom(const Domain& domain, int64_t place, bool up) {
  return ValueAt(domain, std::clamp(place + (up ? 1 : -1), int64_t{0}, *CountValues(domain) - 1));
}

Value MultiplyInSteps(const Domain& domain, double min, double step, double value, double factor) {
  const auto last = static_cast<double>(*CountValues(domain) - 1);
  const auto place_of = [&](double number) {
    return std::clamp(std::round((number - min) / step), 0.0, last);
  };
  const double before = place_of(value);
  const double after = place_of(value * factor);
  if (before != after) return ValueAt(domain, static_cast<int64_t>(std::min(after, last)));
  const bool up = value == 0 ? factor > 1 : value * factor > value;
  return StepFrom(domain, static_cast<int64_t>(std::min(before, last)), up);
}

Value NeighbourOf(const CategoricalDomain& domain, const Value& value, bool up) {
  const bool numbers = std::ranges::all_of(
      domain.values, [](const Value& listed) { return AsNumber(listed).has_value(); });
  if (!numbers) return value;
  const auto same = [&](const Value& listed) { return SameSetting(listed, value); };
  const auto place = std::ranges::find_if(domain.values, same) - domain.values.begin();
  return StepFrom(domain, place, up);
}

// REQUIRES: the value is a number if the domain is a range, and else one of its values.
Value Perturb(const Domain& domain, const Value& value, double factor) {
  if (const auto* choice = std::get_if<CategoricalDomain>(&domain))
    return NeighbourOf(*choice, value, factor > 1);
  if (const auto* reals = std::get_if<FloatDomain>(&domain)) {
    const double number = *AsNumber(value);
    if (reals->step) return MultiplyInSteps(domain, reals->min, *reals->step, number, factor);
    return std::clamp(number * factor, reals->min, reals->max);
  }
  if (const auto* whole = std::get_if<IntDomain>(&domain))
    return MultiplyInSteps(domain, static_cast<double>(whole->min),
                           static_cast<double>(whole->step), *AsNumber(value), factor);
  return value;
}

Value ExploreValue(const Domain& domain, const Value* value, const Exploration& exploration,
                   RandomStream& stream) {
  const bool resampled = stream.Uniform() < exploration.resample_probability;
  const double factor = stream.Integer(0, 1) == 0 ? exploration.smaller : exploration.larger;
  if (value == nullptr || resampled) return Draw(domain, stream);
  const bool range =
      std::holds_alternative<FloatDomain>(domain) || std::holds_alternative<IntDomain>(domain);
  if (range && AsNumber(*value)) return Perturb(domain, *value, factor);
  const auto inside = TryAdmit(domain, *value);
  return inside ? Perturb(domain, *inside, factor) : Draw(domain, stream);
}

std::string ValueText(const Value* value) {
  if (value == nullptr) return "none";
  const auto* real = std::get_if<double>(value);
  return real != nullptr ? FormatShort(*real) : FormatValue(*value);
}

}  // namespace

Config Explore(const SearchSpace& space, const Config& config, const Exploration& exploration,
               uint64_t seed, TrialNumber trial, int64_t count) {
  Config explored;
  for (const size_t place : space.order()) {
    const Parameter& parameter = space.parameters()[place];
    if (!space.IsActive(parameter, explored)) continue;
    const Value* value = config.Find(parameter.name);
    const bool stays = !exploration.MayChange(parameter) && value != nullptr;
    if (const auto kept = stays ? TryAdmit(parameter.domain, *value) : std::nullopt) {
      explored.Set(parameter.name, *kept);
      continue;
    }
    RandomStream stream(seed, trial, "pbt/explore/" + std::to_string(count) + "/" + parameter.name);
    explored.Set(parameter.name, ExploreValue(parameter.domain, value, exploration, stream));
  }
  return space.Resolve(explored).value();
}

std::string DescribeChanges(const Config& before, const Config& after) {
  std::string text;
  const auto changed = [&](const std::string& name) {
    const Value* from = before.Find(name);
    const Value* to = after.Find(name);
    if (from != nullptr && to != nullptr && *from == *to) return;
    text += (text.empty() ? "" : ", ") + name + " " + ValueText(from) + " → " + ValueText(to);
  };
  for (const auto& [name, value] : after.entries()) changed(name);
  for (const auto& [name, value] : before.entries()) {
    if (after.Find(name) == nullptr) changed(name);
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace attune::schedulers
