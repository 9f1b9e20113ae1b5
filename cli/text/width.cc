#include "cli/text/width.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace attune::cli {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

// Unicode's East Asian wide blocks and emoji, as terminals draw them.
constexpr std::array kWide = {
    Range{0x1100, 0x115f},   Range{0x2e80, 0xa4cf},   Range{0xac00, 0xd7a3},
    Range{0xf900, 0xfaff},   Range{0xfe30, 0xfe6f},   Range{0xff00, 0xff60},
    Range{0xffe0, 0xffe6},   Range{0x1f300, 0x1f64f}, Range{0x1f680, 0x1faff},
    Range{0x20000, 0x3fffd},
};

constexpr std::array kCombining = {
    Range{0x300, 0x36f},   Range{0x200b, 0x200f}, Range{0x202a, 0x202e},
    Range{0x2060, 0x2064}, Range{0xfe00, 0xfe0f}, Range{0xfe20, 0xfe2f},
};

template <size_t kSize>
bool Contains(const std::array<Range, kSize>& ranges, char32_t c) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [c](Range range) { return c >= range.first && c <= range.last; });
}

struct Glyph {
  size_t bytes;
  int columns;
  bool valid = true;
};

// The length of the colour sequence ESC [ … m at the start of the text; 0 without one.
size_t EscapeBytes(std::string_view text) {
  if (text.size() < 2 || text[0] != '\x1b' || text[1] != '[') return 0;
  const size_t end = text.find('m');
  return end == std::string_view::npos ? 0 : end + 1;
}

Glyph FirstGlyph(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {1, lead < 0x20 || lead == 0x7f ? 0 : 1};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {1, 1, false};
  char32_t c = lead & (0xff >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return {1, 1, false};
    c = (c << 6) | (next & 0x3f);
  }
  return {bytes, Contains(kCombining, c) ? 0 : Contains(kWide, c) ? 2 : 1};
}

}  // namespace

int DisplayWidth(std::string_view text) {
  int columns = 0;
  while (!text.empty()) {
    const size_t escape = EscapeBytes(text);
    if (escape == 0) {
      const Glyph glyph = FirstGlyph(text);
      columns += glyph.columns;
      text.remove_prefix(glyph.bytes);
    } else {
      text.remove_prefix(escape);
    }
  }
  return columns;
}

std::string Clean(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const auto lead = static_cast<unsigned char>(text[0]);
    const Glyph glyph = FirstGlyph(text);
    // C1 control characters, which some terminals obey, are U+0080 … U+009F.
    const bool c1 = glyph.bytes == 2 && lead == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;
    if (lead < 0x20 || lead == 0x7f || c1) {
      clean += ' ';
    } else if (!glyph.valid) {
      clean += '?';
    } else {
      clean += text.substr(0, glyph.bytes);
    }
    text.remove_prefix(glyph.bytes);
  }
  return clean;
}

std::string FirstLine(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

std::string JoinWithCommas(const std::vector<std::string>& texts) {
  std::string joined;
  for (const std::string& text : texts) joined += (joined.empty() ? "" : ", ") + text;
  return joined;
}

std::string JoinWithCommas(const std::vector<int64_t>& numbers) {
  std::vector<std::string> texts;
  for (const int64_t number : numbers) texts.push_back(std::to_string(number));
  return JoinWithCommas(texts);
}

std::string Clip(std::string_view text, int width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  if (width <= 0) return "";
  std::string clipped;
  bool coloured = false;
  int columns = 0;
  while (!text.empty()) {
    if (const size_t escape = EscapeBytes(text); escape > 0) {
      clipped += text.substr(0, escape);
      coloured = true;
      text.remove_prefix(escape);
      continue;
    }
    const Glyph glyph = FirstGlyph(text);
    if (columns + glyph.columns > width - 1) break;
    clipped += text.substr(0, glyph.bytes);
    columns += glyph.columns;
    text.remove_prefix(glyph.bytes);
  }
  clipped += "…";
  if (coloured) clipped += "\x1b[0m";
  return clipped;
}

std::string Pad(std::string_view text, int width, bool right) {
  const std::string spaces(std::max(0, width - DisplayWidth(text)), ' ');
  return right ? spaces + std::string(text) : std::string(text) + spaces;
}

std::string Bar(double fraction, int width, std::string_view empty) {
  static constexpr std::array<std::string_view, 8> kEighths = {"",  "▏", "▎", "▍",
                                                               "▌", "▋", "▊", "▉"};
  if (!(fraction > 0)) fraction = 0;
  const int eighths = static_cast<int>(std::lround(std::min(fraction, 1.0) * width * 8));
  std::string bar;
  for (int i = 0; i < eighths / 8; ++i) bar += "█";
  int columns = eighths / 8;
  if (eighths % 8 > 0) {
    bar += kEighths[eighths % 8];
    ++columns;
  }
  for (; columns < width; ++columns) bar += empty;
  return bar;
}

}  // namespace attune::cli
