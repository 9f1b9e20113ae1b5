#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "base/result.h"
#include "core/space/search_space.h"
#include "core/space/value.h"

// Functions on the values of a domain: counting and enumerating them, and checking a given value.
namespace attune {

// The value as a number; nullopt for a bool or a text.
std::optional<double> AsNumber(const Value& value);

// Whether two values are the same setting. Numbers are compared as numbers, so that
// `when: {layers: 4}` holds for 4 and for 4.0. Other values are the same only if they have the same
// type.
bool SameSetting(const Value& a, const Value& b);

// A set of values for fast lookup. Values are equal as SameSetting defines it, except that an
// integer beyond ±2^53 never equals a double.
class SettingSet {
 public:
  SettingSet() = default;
  explicit SettingSet(const std::vector<Value>& values);

  bool Insert(const Value& value);  // returns false if the set had it already
  bool Contains(const Value& value) const;

 private:
  static std::optional<Value> KeyOf(const Value& value);  // nullopt for NaN, which equals nothing

  std::set<Value> keys_;
};

// The number of values; nullopt for a real range without a step. REQUIRES: the domain has no fault.
std::optional<int64_t> CountValues(const Domain& domain);

// The value at an index: numbers in ascending order, listed values as listed. Steps of a real range
// give short decimals: 0.1, 0.2, 0.3 and not 0.30000000000000004. The last step is exactly `max` if
// the steps reach it. REQUIRES: 0 <= index < *CountValues(domain).
Value ValueAt(const Domain& domain, int64_t index);

// The value as the domain stores it. In a real range, an integer becomes a real number, and a value
// very close to a step becomes that step. The error says what is wrong, but not which parameter.
Result<Value> Admit(const Domain& domain, const Value& value);

}  // namespace attune
