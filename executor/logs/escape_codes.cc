#include "executor/logs/escape_codes.h"

#include <algorithm>

namespace attune::gang {
namespace {

constexpr char kEscape = '\x1b';
constexpr char kBell = '\a';

bool IsBetween(char c, char first, char last) { return c >= first && c <= last; }

// The size of the escape sequence at the beginning of `text`, which begins with kEscape.
size_t SizeOfSequence(std::string_view text) {
  if (text.size() < 2) return text.size();
  size_t end = 2;
  if (text[1] == '[') {  // parameters and intermediate bytes, then a final byte
    while (end < text.size() && IsBetween(text[end], ' ', '?')) ++end;
    return std::min(end + 1, text.size());
  }
  if (text[1] == ']') {  // a string, such as a title or a link
    while (end < text.size() && text[end] != kBell && text[end] != kEscape) ++end;
    if (end < text.size() && text[end] == kEscape) ++end;
    return std::min(end + 1, text.size());
  }
  end = 1;
  while (end < text.size() && IsBetween(text[end], ' ', '/')) ++end;
  return std::min(end + 1, text.size());
}

}  // namespace

std::string WithoutEscapeCodes(std::string_view line) {
  std::string plain;
  while (!line.empty()) {
    const size_t escape = std::min(line.find(kEscape), line.size());
    plain += line.substr(0, escape);
    line.remove_prefix(escape);
    if (!line.empty()) line.remove_prefix(SizeOfSequence(line));
  }
  return plain;
}

}  // namespace attune::gang
