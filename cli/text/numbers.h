#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/json.h"

namespace attune::cli {

// Four significant digits, as people compare them: 0.8713, 12346, 1.234e-05, nan; no -0.
std::string FormatNumber(double value);

// The same; empty if there is no value.
std::string FormatOptional(std::optional<double> value);

// "850ms", "12.3s", "4m05s", "3h10m", "2d04h".
std::string FormatDuration(double seconds);

// "1 trial", "2 trials".
std::string FormatCount(int64_t count, std::string_view noun);

// "512 B", "431 KiB", "1.5 GiB".
std::string FormatBytes(double bytes);

// A configuration's value in full precision, text without quotes.
std::string FormatSetting(const Json& value);

// "lr=0.1 width=32". Reals are shortened to four digits: for tables, not for copying.
std::string FormatConfigBriefly(const Json& config);

// Of names that stand before values, so that most sections look alike.
inline constexpr int kNameColumnsMin = 10;

// The columns that the longest key of an object takes, `least` at least.
int WidestKey(const Json& object, int least);

// "90s", "1.5h", "2d"; a bare number is refused, so that nobody guesses its unit.
std::optional<double> ParseDuration(std::string_view text);

// "512MiB", "16GiB"; a bare number is refused as well.
std::optional<int64_t> ParseBytes(std::string_view text);

// Seconds since 1970 of "2026-11-21T10:00:00.000000Z"; nullopt when it is not such a time.
std::optional<double> ParseTime(std::string_view text);

}  // namespace attune::cli
