#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/log/sweep_spec.h"
#include "sweepfile/reader.h"

namespace re2 {
class RE2;
}

namespace attune::sweepfile {

// A regular expression that a line of output is searched for; null, with a fault, where it is none.
std::unique_ptr<re2::RE2> ReadPattern(const Spot& spot, const std::string& text, Faults& faults);

// failure.on_log.
std::vector<LogPolicy> ReadLogPolicies(const Spot& spot, Faults& faults);

}  // namespace attune::sweepfile
