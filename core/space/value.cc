#include "core/space/value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace attune {

std::string FormatReal(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";

  std::array<char, 32> digits;  // the shortest form of a double has at most 24 characters
  char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  std::string text(digits.data(), end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string FormatShort(double value) {
  if (!std::isfinite(value)) return FormatReal(value);
  std::array<char, 32> digits;
  char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), value,
                                  std::chars_format::general, 6)
                        .ptr;
  return {digits.data(), end};
}

std::string FormatValue(const Value& value) {
  struct {
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(int64_t i) const { return std::to_string(i); }
    std::string operator()(double r) const { return FormatReal(r); }
    std::string operator()(const std::string& s) const { return s; }
  } format;
  return std::visit(format, value);
}

std::string_view TypeName(const Value& value) {
  constexpr std::array<std::string_view, std::variant_size_v<Value>> kNames = {"bool", "int",
                                                                               "float", "text"};
  return kNames[value.index()];
}

const Value* Config::Find(std::string_view name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.first == name; });
  return found == entries_.end() ? nullptr : &found->second;
}

void Config::Set(std::string name, Value value) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.first == name; });
  if (found == entries_.end()) {
    entries_.emplace_back(std::move(name), std::move(value));
  } else {
    found->second = std::move(value);
  }
}

}  // namespace attune
