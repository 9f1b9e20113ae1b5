#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace attune {

// The number that `text` spells, or nullopt if anything of `text` is not part of it.
// `base` applies to integers.
template <class Number>
std::optional<Number> ParseNumber(std::string_view text, int base = 10) {
  Number number{};
  const char* const last = text.data() + text.size();
  std::from_chars_result parsed;
  if constexpr (std::is_integral_v<Number>)
    parsed = std::from_chars(text.data(), last, number, base);
  else
    parsed = std::from_chars(text.data(), last, number);
  if (parsed.ec != std::errc() || parsed.ptr != last) return std::nullopt;
  return number;
}

}  // namespace attune
