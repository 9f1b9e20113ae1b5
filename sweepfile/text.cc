#include "sweepfile/text.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

#include "base/utf8.h"

namespace attune::sweepfile {
namespace {

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

std::optional<uint32_t> EscapedUnit(std::string_view text) {
  if (text.size() < 6 || text[0] != '\\' || text[1] != 'u') return std::nullopt;
  uint32_t unit = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + 6, unit, 16);
  if (error != std::errc() || end != text.data() + 6) return std::nullopt;
  return unit;
}

void AppendFourBytes(uint32_t code_point, std::string& out) {
  out += static_cast<char>(0xF0 | (code_point >> 18));
  out += static_cast<char>(0x80 | ((code_point >> 12) & 0x3F));
  out += static_cast<char>(0x80 | ((code_point >> 6) & 0x3F));
  out += static_cast<char>(0x80 | (code_point & 0x3F));
}

}  // namespace

std::optional<TextFault> CheckText(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = CharacterBytes(text.substr(at));
    if (bytes == 0) return TextFault{at, "not valid UTF-8; save the file as UTF-8"};
    const auto c = static_cast<unsigned char>(text[at]);
    if (c < 0x20 && c != '\t' && c != '\n' && c != '\r') {
      return TextFault{at, "a control character (code " + std::to_string(c) + "); remove it"};
    }
    at += bytes;
  }
  return std::nullopt;
}

Lines::Lines(std::string_view text) : text_(text), begins_{0} {
  for (size_t at = text.find('\n'); at != text.npos; at = text.find('\n', at + 1)) {
    begins_.push_back(at + 1);
  }
}

Mark Lines::AtOffset(size_t offset) {
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), offset);
  const auto line = static_cast<size_t>(after - begins_.begin()) - 1;
  return AtByte(static_cast<int>(line), static_cast<int>(offset - begins_[line]));
}

Mark Lines::AtByte(int line, int byte) {
  const size_t begin = begins_[std::min(static_cast<size_t>(line), begins_.size() - 1)];
  const size_t at = std::min(static_cast<size_t>(byte), text_.size() - begin);
  if (std::exchange(told_line_, line) != line) told_byte_ = 0, told_characters_ = 0;
  const auto [first, last] = std::minmax(told_byte_, at);
  const std::string_view between = text_.substr(begin + first, last - first);
  const auto characters =
      static_cast<int>(std::ranges::count_if(between, [](char c) { return !IsContinuation(c); }));
  told_characters_ += at < told_byte_ ? -characters : characters;
  told_byte_ = at;
  return {.line = line + 1, .column = told_characters_ + 1};
}

std::string JoinSurrogates(std::string_view json) {
  std::string joined;
  joined.reserve(json.size());
  for (size_t at = 0; at < json.size();) {
    if (json[at] != '\\' || at + 1 >= json.size()) {
      joined += json[at++];
      continue;
    }
    const auto high = EscapedUnit(json.substr(at));
    const auto low = high ? EscapedUnit(json.substr(at + 6)) : std::nullopt;
    if (high && low && *high >= 0xD800 && *high < 0xDC00 && *low >= 0xDC00 && *low < 0xE000) {
      AppendFourBytes(0x10000 + ((*high - 0xD800) << 10) + (*low - 0xDC00), joined);
      at += 12;
      continue;
    }
    joined +=
        json[at];  // copies both characters of any other escape, so that \\u is not read as \u
    joined += json[at + 1];
    at += 2;
  }
  return joined;
}

}  // namespace attune::sweepfile
