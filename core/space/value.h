#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace attune {

// The value of a parameter or an option. It keeps its type and its full precision everywhere.
using Value = std::variant<bool, int64_t, double, std::string>;

// The shortest decimal that reads back as the same double. It always has a point or an exponent, so
// that it stays a real number: 1.0, 0.001, 1e-07, nan, inf, -inf.
std::string FormatReal(double value);

// The number with six digits, for messages: 0.412346, 1e-07, 42, nan.
std::string FormatShort(double value);

// The value as a user writes it; text without quotes.
std::string FormatValue(const Value& value);

// "bool", "int", "float" or "text".
std::string_view TypeName(const Value& value);

// A configuration: names and values in the order of the sweep file. Parameters whose `when` does
// not hold are absent.
class Config {
 public:
  using Entry = std::pair<std::string, Value>;

  Config() = default;
  Config(std::initializer_list<Entry> entries) : entries_(entries) {}
  // REQUIRES: the names are distinct.
  explicit Config(std::vector<Entry> entries) : entries_(std::move(entries)) {}

  const Value* Find(std::string_view name) const;  // null if absent; owned by the Config
  void Set(std::string name, Value value);         // replaces the value in place, or appends it

  const std::vector<Entry>& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }
  bool operator==(const Config&) const = default;

 private:
  std::vector<Entry> entries_;
};

using Metrics = std::map<std::string, double, std::less<>>;

}  // namespace attune
