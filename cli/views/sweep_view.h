#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/text/style.h"
#include "rest/contract.h"

namespace attune::cli {

// `now` is in seconds since 1970.
std::vector<std::string> SweepTable(const std::vector<rest::Sweep>& sweeps, double now,
                                    const Style& style, int width);
// A sweep without a known cost has no line about it.
std::vector<std::string> SweepSections(const rest::SweepDetail& sweep,
                                       const std::optional<rest::SweepCost>& cost, double now,
                                       const Style& style);

// What a sweep has cost, in one line: "12.5 GPU hours used; 1.2 wasted; about 40 saved".
std::string CostText(const rest::SweepCost& cost);
std::vector<std::string> CostSections(const rest::SweepCost& cost, const Style& style);

// The importance of each parameter as a bar, and the number of trials it is computed from.
std::vector<std::string> ImportanceTable(const rest::Importance& importance, const Style& style,
                                         int width);

// The actions of users, in the given order.
std::vector<std::string> ActivityTable(const rest::Activity& activity, const Style& style,
                                       int width);

// The time from the start of the sweep to its end, or to `now`.
double SweepSeconds(const rest::Sweep& sweep, double now);

}  // namespace attune::cli
