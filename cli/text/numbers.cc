#include "cli/text/numbers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <span>

#include "cli/text/width.h"

namespace attune::cli {
namespace {

template <class... Args>
std::string Format(const char* format, Args... args) {
  std::array<char, 64> buffer;
  const int length = std::snprintf(buffer.data(), buffer.size(), format, args...);
  return std::string(buffer.data(), std::min(static_cast<size_t>(length), buffer.size() - 1));
}

struct Unit {
  std::string_view name;
  double factor;
};

std::optional<double> ParseQuantity(std::string_view text, std::span<const Unit> units) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !(number >= 0) || !std::isfinite(number)) return std::nullopt;
  const std::string_view name(end, static_cast<size_t>(text.data() + text.size() - end));
  for (const Unit& unit : units) {
    if (unit.name == name) return number * unit.factor;
  }
  return std::nullopt;
}

}  // namespace

std::string FormatNumber(double value) {
  if (value == 0) return "0";
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  // %g switches to exponents at 10^4; whole numbers of that size are easier to read.
  if (std::abs(value) >= 1e4 && std::abs(value) < 1e7) return Format("%.0f", value);
  return Format("%.4g", value);
}

std::string FormatOptional(std::optional<double> value) {
  return value.has_value() ? FormatNumber(*value) : "";
}

std::string FormatHundredths(double value) { return Format("%.2f", value); }

std::string FormatPercent(double share) { return std::to_string(std::lround(share * 100)) + '%'; }

std::string FormatDuration(double seconds) {
  if (!(seconds >= 0)) seconds = 0;
  if (seconds < 0.9995) return Format("%.0fms", seconds * 1000);
  if (seconds < 59.95) return Format("%.1fs", seconds);
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (whole < 3600) return Format("%lldm%02llds", whole / 60, whole % 60);
  if (whole < 86400) return Format("%lldh%02lldm", whole / 3600, whole / 60 % 60);
  return Format("%lldd%02lldh", whole / 86400, whole / 3600 % 24);
}

std::string FormatCount(int64_t count, std::string_view noun) {
  return std::to_string(count) + ' ' + std::string(noun) + (count == 1 ? "" : "s");
}

std::string FormatBytes(double bytes) {
  static constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return Format(unit == 0 || bytes >= 100 ? "%.0f %s" : "%.1f %s", bytes, kUnits[unit]);
}

std::string FormatSetting(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return Dump(value);
}

std::string FormatConfigBriefly(const Json& config) {
  std::string line;
  for (const auto& [name, value] : config.items()) {
    if (!line.empty()) line += ' ';
    line += name + '=';
    line += value.is_number_float() ? FormatNumber(value.get<double>()) : FormatSetting(value);
  }
  return line;
}

int WidestKey(const Json& object, int least) {
  for (const auto& [key, value] : object.items()) least = std::max(least, DisplayWidth(Clean(key)));
  return least;
}

std::optional<double> ParseDuration(std::string_view text) {
  static constexpr std::array kUnits = {Unit{"ms", 0.001}, Unit{"s", 1}, Unit{"m", 60},
                                        Unit{"h", 3600}, Unit{"d", 86400}};
  return ParseQuantity(text, kUnits);
}

std::optional<int64_t> ParseBytes(std::string_view text) {
  static constexpr std::array kUnits = {
      Unit{"KiB", 0x1p10}, Unit{"MiB", 0x1p20}, Unit{"GiB", 0x1p30},
      Unit{"TiB", 0x1p40}, Unit{"kB", 1e3},     Unit{"MB", 1e6},
      Unit{"GB", 1e9},     Unit{"TB", 1e12},    Unit{"B", 1}};
  const std::optional<double> bytes = ParseQuantity(text, kUnits);
  if (!bytes.has_value() || *bytes > 0x1p60) return std::nullopt;
  return static_cast<int64_t>(*bytes);
}

std::optional<double> ParseTime(std::string_view text) {
  std::tm day{};
  double seconds = 0;
  char zone = 0;
  const std::string copy(text);
  if (std::sscanf(copy.c_str(), "%4d-%2d-%2dT%2d:%2d:%lf%c", &day.tm_year, &day.tm_mon,
                  &day.tm_mday, &day.tm_hour, &day.tm_min, &seconds, &zone) != 7 ||
      zone != 'Z') {
    return std::nullopt;
  }
  day.tm_year -= 1900;
  day.tm_mon -= 1;
  return static_cast<double>(timegm(&day)) + seconds;
}

}  // namespace attune::cli
