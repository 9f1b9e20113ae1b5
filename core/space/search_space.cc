#include "core/space/search_space.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>

#include "base/check.h"
#include "base/result.h"
#include "core/space/domain.h"

namespace attune {
namespace {

bool IsMet(const Condition& condition, const Value& value) {
  if (!condition.any_of.empty()) {
    return std::any_of(condition.any_of.begin(), condition.any_of.end(),
                       [&](const Value& wanted) { return SameSetting(wanted, value); });
  }
  const auto number = AsNumber(value);
  return number && (!condition.at_least || *number >= *condition.at_least) &&
         (!condition.at_most || *number <= *condition.at_most);
}

std::string Describe(const Condition& condition) {
  std::string text = condition.parent;
  if (!condition.any_of.empty()) {
    text += " is ";
    for (size_t i = 0; i < condition.any_of.size(); ++i) {
      text += (i == 0 ? "" : " or ") + FormatValue(condition.any_of[i]);
    }
    return text;
  }
  if (condition.at_least) text += " is at least " + FormatReal(*condition.at_least);
  if (condition.at_least && condition.at_most) text += " and";
  if (condition.at_most) text += " is at most " + FormatReal(*condition.at_most);
  return text;
}

// Why the parameter is absent, for the first of its conditions that does not hold.
std::string WhyAbsent(const Parameter& parameter, const Config& config) {
  for (const Condition& condition : parameter.when) {
    const Value* value = config.Find(condition.parent);
    if (value && IsMet(condition, *value)) continue;
    return "exists only when " + Describe(condition) + ", but " + condition.parent + " is " +
           (value ? FormatValue(*value) : "absent");
  }
  return "";
}

Error ParameterError(const std::string& parameter, const std::string& message) {
  return {ErrorCode::kInvalid, parameter + ": " + message};
}

}  // namespace

// Kahn's algorithm. Among the parameters whose parents are done, the first one in the file is next.
SearchSpace::SearchSpace(std::vector<Parameter> parameters) : parameters_(std::move(parameters)) {
  for (size_t i = 0; i < parameters_.size(); ++i) places_[parameters_[i].name] = i;

  std::vector<std::vector<size_t>> children(parameters_.size());
  std::vector<size_t> waits_for(parameters_.size());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    waits_for[i] = parameters_[i].when.size();
    for (const Condition& condition : parameters_[i].when) {
      const auto parent = places_.find(condition.parent);
      ATTUNE_CHECK(parent != places_.end());
      children[parent->second].push_back(i);
    }
  }

  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (waits_for[i] == 0) ready.push(i);
  }
  order_.reserve(parameters_.size());
  while (!ready.empty()) {
    const size_t next = ready.top();
    ready.pop();
    order_.push_back(next);
    for (const size_t child : children[next]) {
      if (--waits_for[child] == 0) ready.push(child);
    }
  }
  ATTUNE_CHECK(order_.size() == parameters_.size());
}

const Parameter* SearchSpace::Find(std::string_view name) const {
  const auto place = PlaceOf(name);
  return place ? &parameters_[*place] : nullptr;
}

std::optional<size_t> SearchSpace::PlaceOf(std::string_view name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

SearchSpace::Values SearchSpace::ValuesByPlace(const Config& config) const {
  Values values(parameters_.size());
  for (const auto& [name, value] : config.entries()) {
    if (const auto place = PlaceOf(name)) values[*place] = &value;
  }
  return values;
}

bool SearchSpace::IsActive(const Parameter& parameter, const Config& config) const {
  return std::all_of(parameter.when.begin(), parameter.when.end(), [&](const Condition& condition) {
    const Value* value = config.Find(condition.parent);
    return value && IsMet(condition, *value);
  });
}

bool SearchSpace::IsActive(const Parameter& parameter, const Values& values) const {
  return std::ranges::all_of(parameter.when, [&](const Condition& condition) {
    const Value* value = values[*PlaceOf(condition.parent)];
    return value && IsMet(condition, *value);
  });
}

Result<Config> SearchSpace::Resolve(const Config& config) const {
  for (const auto& [name, value] : config.entries()) {
    if (!Find(name)) return ParameterError(name, "is not a parameter of this sweep; remove it");
  }

  const Values values = ValuesByPlace(config);
  std::vector<Value> admitted_values(parameters_.size());
  Values decided(parameters_.size());
  for (const size_t place : order_) {
    const Parameter& parameter = parameters_[place];
    const Value* given = values[place];
    if (!IsActive(parameter, decided)) {
      if (given)
        return ParameterError(parameter.name,
                              WhyAbsent(parameter, InFileOrder(decided)) + "; remove it");
      continue;
    }
    const auto* constant = std::get_if<ConstantDomain>(&parameter.domain);
    if (!given && constant) given = &constant->value;
    if (!given) return ParameterError(parameter.name, "has no value; give it one");

    Result<Value> admitted = Admit(parameter.domain, *given);
    if (!admitted.ok()) return ParameterError(parameter.name, admitted.error().message);
    admitted_values[place] = *std::move(admitted);
    decided[place] = &admitted_values[place];
  }
  return InFileOrder(decided);
}

Config SearchSpace::InFileOrder(const Values& values) const {
  std::vector<Config::Entry> entries;
  for (size_t place = 0; place < values.size(); ++place) {
    if (values[place]) entries.emplace_back(parameters_[place].name, *values[place]);
  }
  return Config(std::move(entries));
}

}  // namespace attune
