#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/json.h"

namespace attune::cli {

// Four significant digits: 0.8713, 12346, 1.234e-05, nan. Prints -0 as 0.
std::string FormatNumber(double value);

// FormatNumber of the value; empty without one.
std::string FormatOptional(std::optional<double> value);

// "12.50"
std::string FormatHundredths(double value);

// A share in whole percent: "87%".
std::string FormatPercent(double share);

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

// Minimum width of the names before values, so that most sections align.
inline constexpr int kNameColumnsMin = 10;

// The width of the longest key of an object, but at least `least`.
int WidestKey(const Json& object, int least);

// "90s", "1.5h", "2d"; nullopt for a number without a unit, which is ambiguous.
std::optional<double> ParseDuration(std::string_view text);

// "512MiB", "16GiB", "50MB"; nullopt for a number without a unit.
std::optional<int64_t> ParseBytes(std::string_view text);

// Seconds since 1970 of "2026-11-21T10:00:00.000000Z"; nullopt for other texts.
std::optional<double> ParseTime(std::string_view text);

}  // namespace attune::cli
