#pragma once

#include <string>

#include "core/base/ids.h"

namespace attune::server {

// RFC 3339 in UTC with microseconds: 2026-11-21T10:00:00.000000Z. Sorts as the times do, and
// SQLite's date functions read it.
std::string FormatTime(Time time);

}  // namespace attune::server
