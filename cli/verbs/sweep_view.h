#pragma once

#include <string>
#include <vector>

#include "cli/json.h"
#include "cli/text/style.h"

namespace attune::cli {

// Sweeps of REST as people read them. `now` in seconds since 1970.
std::vector<std::string> SweepTable(const Json& sweeps, double now, const Style& style, int width);
std::vector<std::string> SweepSections(const Json& sweep, double now, const Style& style);

// How long the sweep took, or has taken so far.
double SweepSeconds(const Json& sweep, double now);

}  // namespace attune::cli
