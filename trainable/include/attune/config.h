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
// A read names the type it expects. A missing parameter or one of another type throws
// attune::Error with the parameter's name, what it is and what was expected. Real() also takes
// integers; nothing else is converted. Names that nobody reads are remembered, so that a
// misspelt parameter is noticed (see Unread()).
//
// Not for concurrent use.
class Config {
 public:
  // What a parameter is.
  using Value = std::variant<bool, std::int64_t, double, std::string>;

  // Parameters by name.
  Config() = default;
  explicit Config(std::map<std::string, Value> values) : values_(std::move(values)) {}
  // {{"lr", 0.1}, {"width", 32}, {"optimizer", "sgd"}}
  Config(std::initializer_list<std::pair<const std::string, Value>> values) : values_(values) {}

  // Whether there is such a parameter. To ask is to read it.
  bool Has(std::string_view name) const;

  // The parameter's value.
  double Real(std::string_view name) const;
  std::int64_t Int(std::string_view name) const;
  bool Bool(std::string_view name) const;
  const std::string& Text(std::string_view name) const;

  // As above, with a value for when the parameter is absent: a conditional parameter, or a
  // program run by hand. A parameter that is present with another type still throws.
  double RealOr(std::string_view name, double fallback) const;
  std::int64_t IntOr(std::string_view name, std::int64_t fallback) const;
  bool BoolOr(std::string_view name, bool fallback) const;
  std::string TextOr(std::string_view name, std::string fallback) const;

  // All of them, by name.
  const std::map<std::string, Value>& values() const { return values_; }

  // Parameters that no call above has asked for, in alphabetical order.
  std::set<std::string> Unread() const;

  // {"lr": 0.1, "width": 32}; FromJson(ToJson()) gives the same values to the bit.
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
