#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/ids.h"

namespace attune::server {

// The present time of the machine's clock.
Time WallTime();

// A time as RFC 3339 in UTC with microseconds: 2026-11-21T10:00:00.000000Z. The texts sort like the
// times, and SQLite's date functions can read them.
std::string FormatTime(Time time);

// Reads a time as RFC 3339 in UTC: 2026-11-21T10:00:00Z, with up to six digits after the second.
// nullopt if the text has another form, or if there is no such time.
std::optional<Time> ParseTime(std::string_view text);

}  // namespace attune::server
