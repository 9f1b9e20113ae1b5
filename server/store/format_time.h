#pragma once

#include <string>

#include "core/base/ids.h"

namespace attune::server {

// A time as RFC 3339 in UTC with microseconds: 2026-11-21T10:00:00.000000Z. The texts sort like the
// times, and SQLite's date functions can read them.
std::string FormatTime(Time time);

}  // namespace attune::server
