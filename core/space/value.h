#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace attune {

// One setting of a configuration or an option. It keeps its type and its full precision everywhere.
using Value = std::variant<bool, int64_t, double, std::string>;

// Shortest decimal that reads back as the same double; always with a point or an exponent, so that
// it stays a real number: 1.0, 0.001, 1e-07, nan, inf, -inf.
std::string FormatReal(double value);

// Six digits, for a sentence: 0.412346, 1e-07, 42, nan.
std::string FormatShort(double value);

// As a person or a command line would write it; text without quotes.
std::string FormatValue(const Value& value);

// "bool", "int", "float" or "text".
std::string_view TypeName(const Value& value);

// A configuration: names and values in the order of the sweep file. A parameter that is not active
// (its `when` does not hold) is absent.
class Config {
 public:
  using Entry = std::pair<std::string, Value>;

  Config() = default;
  Config(std::initializer_list<Entry> entries) : entries_(entries) {}
  // REQUIRES: no name is there twice.
  explicit Config(std::vector<Entry> entries) : entries_(std::move(entries)) {}

  const Value* Find(std::string_view name) const;  // null when absent; owned by the Config
  void Set(std::string name, Value value);         // keeps the place of a name already there

  const std::vector<Entry>& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }
  bool operator==(const Config&) const = default;

 private:
  std::vector<Entry> entries_;
};

using Metrics = std::map<std::string, double, std::less<>>;

}  // namespace attune
