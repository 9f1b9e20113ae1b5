#pragma once

#include <string>
#include <vector>

#include "cli/json.h"
#include "cli/text/style.h"

namespace attune::cli {

// What `attune replay` prints of the server's answer: the sweep as it was beside what it had been,
// what became of its winner, and the trials that had ended elsewhere. `width` 0: no limit.
std::vector<std::string> ReplaySections(const Json& replay, const Style& style, int width);

}  // namespace attune::cli
