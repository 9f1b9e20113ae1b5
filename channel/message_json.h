#pragma once

#include <cmath>
#include <string>

#include "base/message_limits.h"
#include "json/parse.h"

// The JSON form of values, for messages.cc and write_messages.cc.
namespace attune::channel {

inline constexpr const char* kActions[] = {"continue", "stop", "pause"};  // in the order of Action

// JSON has neither NaN nor infinities.
inline nlohmann::ordered_json Number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

// Cuts a text to at most kErrorTextBytesMax bytes. Does not split a UTF-8 character.
inline std::string Shorten(std::string text) {
  if (text.size() <= kErrorTextBytesMax) return text;
  size_t end = kErrorTextBytesMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text;
}

}  // namespace attune::channel
