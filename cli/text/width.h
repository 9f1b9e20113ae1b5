#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attune::cli {

// Terminal columns of UTF-8 text. Escape sequences that set colours take none.
int DisplayWidth(std::string_view text);

// Makes text from a server or program safe for a terminal: control characters become spaces, and
// invalid UTF-8 becomes '?'.
std::string Clean(std::string_view text);

// `text` up to its first line end.
std::string FirstLine(std::string_view text);

// "a, b, c"; "1, 3, 9".
std::string JoinWithCommas(const std::vector<std::string>& texts);
std::string JoinWithCommas(const std::vector<int64_t>& numbers);

// At most `width` columns, ending in "…" if it was cut; closes colours.
std::string Clip(std::string_view text, int width);

// `text`, filled with spaces to `width` columns. `right` aligns it to the right.
std::string Pad(std::string_view text, int width, bool right = false);

// A bar of `width` columns in eighths, filled to `fraction` (clamped to 0…1); the rest is `empty`.
std::string Bar(double fraction, int width, std::string_view empty = "░");

}  // namespace attune::cli
