#pragma once

#include <string>
#include <vector>

#include "cli/text/style.h"
#include "rest/contract.h"

namespace attune::cli {

// How busy each executor and each of its GPUs was.
std::vector<std::string> OccupancyTable(const rest::OccupancyList& list, const Style& style,
                                        int width);

// The gangs that wait, in order.
std::vector<std::string> QueueTable(const std::vector<rest::QueuedGang>& gangs, const Style& style,
                                    int width);

}  // namespace attune::cli
