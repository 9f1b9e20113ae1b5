#include "server/store/format_time.h"

#include <array>
#include <chrono>
#include <cstdio>

namespace attune::server {

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

}  // namespace attune::server
