#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"

namespace attune {

// What an executor says of itself beside its resources, by name: gpu: h100, zone: a.
using Labels = std::map<std::string, std::string>;

// The labels that a gang asks of each executor it runs on: of each name, one of these values.
using Requirements = std::map<std::string, std::set<std::string>>;

inline constexpr size_t kMaxLabels = 32;      // of one executor; and names that one gang asks for
inline constexpr size_t kMaxLabelBytes = 63;  // of a name, and of a value

// Names and values are made of letters, digits, `-`, `_`, `.` and `/`, so that they stand in a
// command line and a message without quotes. The error names the text.
Status CheckLabelName(std::string_view name);
Status CheckLabelValue(std::string_view value);
Status CheckLabels(const Labels& labels);  // those of an executor, and how many there are

bool Match(const Requirements& required, const Labels& labels);

// gpu=h100, zone=a; gpu=a100 or h100. Empty where there is none.
std::string ToString(const Labels& labels);
std::string ToString(const Requirements& required);

}  // namespace attune
