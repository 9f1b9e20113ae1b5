#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "core/space/value.h"

namespace attune {

enum class Scale { kLinear, kLog };

// Bounds are actual values, both included. With `step`, the values are min, min + step, … up to
// max.
struct FloatDomain {
  double min = 0;
  double max = 0;
  Scale scale = Scale::kLinear;
  std::optional<double> step;
  bool operator==(const FloatDomain&) const = default;
};

struct IntDomain {
  int64_t min = 0;
  int64_t max = 0;
  Scale scale = Scale::kLinear;
  int64_t step = 1;
  bool operator==(const IntDomain&) const = default;
};

struct CategoricalDomain {
  std::vector<Value> values;
  bool operator==(const CategoricalDomain&) const = default;
};

struct ConstantDomain {
  Value value;
  bool operator==(const ConstantDomain&) const = default;
};

using Domain = std::variant<FloatDomain, IntDomain, CategoricalDomain, ConstantDomain>;

// What a parent parameter must be for a parameter to exist. It does not hold when the parent is
// absent. Exactly one form is used: one of `any_of`, or the bounds `at_least` / `at_most`.
struct Condition {
  std::string parent;
  std::vector<Value> any_of;
  std::optional<double> at_least;
  std::optional<double> at_most;
  bool operator==(const Condition&) const = default;
};

struct Parameter {
  std::string name;
  Domain domain;
  std::vector<Condition> when;  // all must hold
  bool operator==(const Parameter&) const = default;
};

// A fault of a search space, with the place it stands at: name of the parameter and key within it
// ("lr", "max").
struct SpaceFault {
  std::string parameter;
  std::string key;
  std::string message;
};

// The parameters of a sweep. Their order in the file is kept for people; `order()` puts parents
// before the parameters whose `when` names them.
class SearchSpace {
 public:
  SearchSpace() = default;

  // Every fault at once: empty space, min > max, log scale at or below zero, step ≤ 0, no values,
  // duplicate values or names, a `when` that names no parameter, can never hold, or runs in a
  // circle. After kDetailedFaults, a fault is empty: it only counts.
  static constexpr size_t kDetailedFaults = 100;
  static std::vector<SpaceFault> Check(const std::vector<Parameter>& parameters);

  // REQUIRES: Check(parameters) is empty.
  explicit SearchSpace(std::vector<Parameter> parameters);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<size_t>& order() const { return order_; }
  const Parameter* Find(std::string_view name) const;
  std::optional<size_t> PlaceOf(std::string_view name) const;  // in parameters()

  // The values of a configuration by the place of their parameter, for who needs many of them; null
  // where it has none. The configuration owns them. Names of no parameter are left out.
  using Values = std::vector<const Value*>;
  Values ByPlace(const Config& config) const;

  // Whether the parameter exists beside these values. Parents must already be decided.
  bool Active(const Parameter& parameter, const Config& config) const;
  bool Exists(const Parameter& parameter, const Values& values) const;

  // A configuration with exactly the active parameters, each inside its domain; the error names the
  // parameter. Integers are accepted for floats. Missing constants are filled in.
  Result<Config> Resolve(const Config& config) const;

  bool operator==(const SearchSpace& other) const { return parameters_ == other.parameters_; }

 private:
  Config InFileOrder(const Values& values) const;

  std::vector<Parameter> parameters_;
  std::vector<size_t> order_;
  std::map<std::string, size_t, std::less<>> places_;  // in parameters_, by name
};

}  // namespace attune
