#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/base/ids.h"
#include "core/space/search_space.h"

namespace attune {

// What a trial is trained with from each of these steps on: whole configurations.
using ConfigSchedule = std::map<Step, Config>;

// 8: lr=0.12, width=32; 16: lr=0.1, width=32
//
// In order of the steps. What is no word of letters, digits and _ . + - / stands in double quotes,
// with a backslash before " and \. Reals have every digit that they need.
std::string FormatSchedule(const ConfigSchedule& schedule);

// Reads such a text, in which steps are from 1 on and grow, and every configuration is one of the
// space, constants left out or not. kInvalid says at which character or step what is wrong.
Result<ConfigSchedule> ParseSchedule(std::string_view text, const SearchSpace& space);

}  // namespace attune
