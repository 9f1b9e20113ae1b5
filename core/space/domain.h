#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "base/result.h"
#include "core/space/search_space.h"
#include "core/space/value.h"

// The values of a domain: which there are, one by one where they can be counted, and whether a
// given one is among them.
namespace attune {

// What a number is worth; nullopt for a bool or a text.
std::optional<double> Number(const Value& value);

// Numbers are compared by their worth, so that `when: {layers: 4}` holds for 4 and for 4.0; of
// other values only those of one type can be the same.
bool SameSetting(const Value& a, const Value& b);

// Values, of which many are looked up. SameSetting says which are the same, except that an integer
// beyond ±2^53 is another setting than a double.
class SettingSet {
 public:
  SettingSet() = default;
  explicit SettingSet(const std::vector<Value>& values);

  bool Insert(const Value& value);  // false: it was there already
  bool Contains(const Value& value) const;

 private:
  static std::optional<Value> KeyOf(const Value& value);  // nullopt: NaN, which is like no other

  std::set<Value> keys_;
};

// How many values there are; nullopt: not countable, a real range without a step.
// REQUIRES: the domain has no fault.
std::optional<int64_t> CountValues(const Domain& domain);

// The value at a place of the domain, from 0, smallest number first or as listed. Steps of a real
// range give the decimal that a person would write: 0.1, 0.2, 0.3 and not 0.30000000000000004; the
// last one is `max` itself where the steps meet it. REQUIRES: 0 <= index < *CountValues(domain).
Value ValueAt(const Domain& domain, int64_t index);

// The value as the domain holds it: an integer becomes real in a real range, a value next to a step
// that step. The error says what is wrong with it, without naming the parameter.
Result<Value> Admit(const Domain& domain, const Value& value);

}  // namespace attune
