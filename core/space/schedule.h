#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/base/ids.h"
#include "core/space/search_space.h"

namespace attune {

// The complete configuration with which a trial trains from each of these steps on.
using ConfigSchedule = std::map<Step, Config>;

// The schedule as text, in order of the steps: "8: lr=0.12, width=32; 16: lr=0.1, width=32".
//
// A name or value with any character except letters, digits and _ . + - / is in double quotes, with
// a backslash before " and \. Reals have enough digits to be read back exactly.
std::string FormatSchedule(const ConfigSchedule& schedule);

// Parses such a text. Steps must be at least 1 and ascending, and each configuration must be valid
// in the space; constants may be omitted. The error (kInvalid) names the character or the step.
Result<ConfigSchedule> ParseSchedule(std::string_view text, const SearchSpace& space);

}  // namespace attune
