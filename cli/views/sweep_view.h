#pragma once

#include <string>
#include <vector>

#include "cli/json.h"
#include "cli/text/style.h"

namespace attune::cli {

// Sweeps, as REST answers them, in tables and sections. `now` is in seconds since 1970.
std::vector<std::string> SweepTable(const Json& sweeps, double now, const Style& style, int width);
std::vector<std::string> SweepSections(const Json& sweep, double now, const Style& style);

// The importance of each parameter as a bar, and the number of trials it is computed from.
std::vector<std::string> ImportanceTable(const Json& importance, const Style& style, int width);

// The time from the start of the sweep to its end, or to `now`.
double SweepSeconds(const Json& sweep, double now);

}  // namespace attune::cli
