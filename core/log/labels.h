#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"

namespace attune {

// Properties of an executor, by name: gpu: h100, zone: a.
using Labels = std::map<std::string, std::string>;

// The labels that every executor of a gang must have. For each name, the value must be in the set.
using Requirements = std::map<std::string, std::set<std::string>>;

inline constexpr size_t kMaxLabels = 32;      // of one executor, and names that one gang requires
inline constexpr size_t kMaxLabelBytes = 63;  // of a name, and of a value

// Names and values have only letters, digits, `-`, `_`, `.` and `/`, so that they need no quotes in
// command lines and messages. The error names the text.
Status CheckLabelName(std::string_view name);
Status CheckLabelValue(std::string_view value);
Status CheckLabels(const Labels& labels);  // all labels of an executor, and their number

bool Matches(const Requirements& required, const Labels& labels);

// For messages: "gpu=h100, zone=a"; "gpu=a100 or h100". Empty if there is none.
std::string ToString(const Labels& labels);
std::string ToString(const Requirements& required);

}  // namespace attune
