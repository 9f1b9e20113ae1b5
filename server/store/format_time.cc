#include "server/store/format_time.h"

#include <array>
#include <chrono>
#include <cstdio>

#include "base/parse_number.h"

namespace attune::server {

Time WallTime() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return Time{std::chrono::duration_cast<std::chrono::microseconds>(now).count()};
}

std::string FormatTime(Time time) {
  using std::chrono::days;
  using std::chrono::microseconds;
  const std::chrono::sys_time<microseconds> at{microseconds(time.us)};
  const auto day = std::chrono::floor<days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(at - day);
  std::array<char, 64> text;
  const int length = std::snprintf(
      text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%06dZ",
      static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
      static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
      static_cast<int>(clock.minutes().count()), static_cast<int>(clock.seconds().count()),
      static_cast<int>(clock.subseconds().count()));
  return {text.data(), static_cast<size_t>(length)};
}

std::optional<Time> ParseTime(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00";
  constexpr size_t kFractionMax = 6;
  if (text.size() <= kForm.size() || text.back() != 'Z') return std::nullopt;
  for (size_t i = 0; i < kForm.size(); ++i) {
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == '0' ? !is_digit : text[i] != kForm[i]) return std::nullopt;
  }
  const auto number = [&](size_t place, size_t length) {
    return ParseNumber<int>(text.substr(place, length)).value_or(0);
  };
  using std::chrono::microseconds;
  const std::chrono::year_month_day date(std::chrono::year(number(0, 4)),
                                         std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                         std::chrono::day(static_cast<unsigned>(number(8, 2))));
  const int hour = number(11, 2), minute = number(14, 2), second = number(17, 2);
  if (!date.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  int64_t us = 0;
  if (std::string_view fraction = text.substr(kForm.size(), text.size() - kForm.size() - 1);
      !fraction.empty()) {
    std::string digits(fraction.substr(1));
    const bool all_digits = digits.find_first_not_of("0123456789") == digits.npos;
    if (fraction.front() != '.' || digits.empty() || digits.size() > kFractionMax || !all_digits)
      return std::nullopt;
    digits.resize(kFractionMax, '0');
    us = ParseNumber<int64_t>(digits).value_or(0);
  }
  const auto at = std::chrono::sys_days(date) + std::chrono::hours(hour) +
                  std::chrono::minutes(minute) + std::chrono::seconds(second) + microseconds(us);
  return Time{std::chrono::duration_cast<microseconds>(at.time_since_epoch()).count()};
}

}  // namespace attune::server
