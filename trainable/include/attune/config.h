#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace attune::inline sdk {

// The configuration of a trial: parameter names and values, exactly as the searcher proposed them.
//
// The getter determines the expected type. A missing parameter, or one of another type, throws
// attune::Error with its name, its actual type and the expected type. Real() also accepts integers;
// there are no other conversions. The object remembers which parameters were read, to find misspelt
// names (see Unread()).
//
// Not for concurrent use.
class Config {
 public:
  // The value of a parameter.
  using Value = std::variant<bool, std::int64_t, double, std::string>;

  // Parameters by name.
  Config() = default;
  explicit Config(std::map<std::string, Value> values) : values_(std::move(values)) {}
  // {{"lr", 0.1}, {"width", 32}, {"optimizer", "sgd"}}
  Config(std::initializer_list<std::pair<const std::string, Value>> values) : values_(values) {}

  // Whether the parameter exists. The call counts as reading it.
  bool Has(std::string_view name) const;

  // The parameter's value.
  double Real(std::string_view name) const;
  std::int64_t Int(std::string_view name) const;
  bool Bool(std::string_view name) const;
  const std::string& Text(std::string_view name) const;

  // Like the getters above, but return `fallback` if the parameter is absent, as a conditional
  // parameter or in a program run by hand may be. A parameter of another type still throws.
  double RealOr(std::string_view name, double fallback) const;
  std::int64_t IntOr(std::string_view name, std::int64_t fallback) const;
  bool BoolOr(std::string_view name, bool fallback) const;
  std::string TextOr(std::string_view name, std::string fallback) const;

  // All parameters, by name.
  const std::map<std::string, Value>& values() const { return values_; }

  // Parameters that no call above has read, in alphabetical order.
  std::set<std::string> Unread() const;

  // Converts to JSON: {"lr": 0.1, "width": 32}. FromJson(ToJson()) returns exactly the same values.
  std::string ToJson() const;
  static Config FromJson(std::string_view json);

  friend bool operator==(const Config& a, const Config& b) { return a.values_ == b.values_; }

 private:
  const Value* Find(std::string_view name) const;
  const Value& Get(std::string_view name) const;

  std::map<std::string, Value> values_;
  mutable std::set<std::string, std::less<>> read_;
};

}  // namespace attune::inline sdk
