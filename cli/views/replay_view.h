#pragma once

#include <string>
#include <vector>

#include "cli/text/style.h"
#include "rest/contract.h"

namespace attune::cli {

// The output of `attune replay`: the real sweep and the replayed one side by side, the fate of the
// best trial, and the trials that ended elsewhere. `width` 0: no limit.
std::vector<std::string> ReplaySections(const rest::Replay& replay, const Style& style, int width);

}  // namespace attune::cli
