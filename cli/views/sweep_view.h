#pragma once

#include <string>
#include <vector>

#include "cli/text/style.h"
#include "rest/contract.h"

namespace attune::cli {

// `now` is in seconds since 1970.
std::vector<std::string> SweepTable(const std::vector<rest::Sweep>& sweeps, double now,
                                    const Style& style, int width);
std::vector<std::string> SweepSections(const rest::SweepDetail& sweep, double now,
                                       const Style& style);

// The importance of each parameter as a bar, and the number of trials it is computed from.
std::vector<std::string> ImportanceTable(const rest::Importance& importance, const Style& style,
                                         int width);

// The time from the start of the sweep to its end, or to `now`.
double SweepSeconds(const rest::Sweep& sweep, double now);

}  // namespace attune::cli
