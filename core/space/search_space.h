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

// The bounds are inclusive. With `step`, the values are min, min + step, … up to max.
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

// The values of a parent parameter with which a parameter exists. A condition does not hold if the
// parent is absent. It has either values (`any_of`) or bounds (`at_least`, `at_most`).
struct Condition {
  std::string parent;
  std::vector<Value> any_of;
  std::optional<double> at_least;
  std::optional<double> at_most;
  bool operator==(const Condition&) const = default;
};

// The choice of a parameter with patches that leaves the code unchanged.
inline constexpr std::string_view kNoPatch = "none";

struct Parameter {
  std::string name;
  Domain domain;
  std::vector<Condition> when;  // the parameter exists if all of them hold
  // The values are patches of the sweep's code: paths in its snapshot, or kNoPatch.
  bool patches = false;
  bool operator==(const Parameter&) const = default;
};

// A fault of a search space, with its place: the name of the parameter and the key within it ("lr",
// "max").
struct SpaceFault {
  std::string parameter;
  std::string key;
  std::string message;
};

// The parameters of a sweep. `parameters()` keeps the order of the file. `order()` puts each parent
// before the parameters whose `when` names it.
class SearchSpace {
 public:
  SearchSpace() = default;

  // All faults: min > max, a log scale with min <= 0, step <= 0, no values, duplicate values or
  // names, and a `when` that names no parameter, can never hold, or is part of a cycle. Faults
  // after the first kDetailedFaults are empty and only count.
  static constexpr size_t kDetailedFaults = 100;
  static std::vector<SpaceFault> Check(const std::vector<Parameter>& parameters);

  // REQUIRES: Check(parameters) is empty.
  explicit SearchSpace(std::vector<Parameter> parameters);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<size_t>& order() const { return order_; }
  const Parameter* Find(std::string_view name) const;
  std::optional<size_t> PlaceOf(std::string_view name) const;  // in parameters()

  // The values of a configuration, indexed like parameters(); null if it has no value. The pointers
  // are valid as long as the configuration. Names that are no parameter are ignored.
  using Values = std::vector<const Value*>;
  Values ValuesByPlace(const Config& config) const;

  // Whether the conditions of the parameter hold with these values. REQUIRES: its parents have
  // their final values.
  bool IsActive(const Parameter& parameter, const Config& config) const;
  bool IsActive(const Parameter& parameter, const Values& values) const;

  // The configuration in its final form: exactly the active parameters, each inside its domain,
  // with integers converted for real ranges and constants filled in. The error names the parameter.
  Result<Config> Resolve(const Config& config) const;

  bool operator==(const SearchSpace& other) const { return parameters_ == other.parameters_; }

 private:
  Config InFileOrder(const Values& values) const;

  std::vector<Parameter> parameters_;
  std::vector<size_t> order_;
  std::map<std::string, size_t, std::less<>> places_;  // in parameters_, by name
};

}  // namespace attune
