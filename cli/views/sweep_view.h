#pragma once

#include <string>
#include <vector>

#include "cli/json.h"
#include "cli/text/style.h"

namespace attune::cli {

// Sweeps of REST as people read them. `now` in seconds since 1970.
std::vector<std::string> SweepTable(const Json& sweeps, double now, const Style& style, int width);
std::vector<std::string> SweepSections(const Json& sweep, double now, const Style& style);

// Its parameters with bars, and from how many trials that is known.
std::vector<std::string> ImportanceTable(const Json& importance, const Style& style, int width);

// How long the sweep took, or has taken so far.
double SweepSeconds(const Json& sweep, double now);

}  // namespace attune::cli
