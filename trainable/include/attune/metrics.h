#pragma once

#include <map>
#include <string>

namespace attune::inline sdk {

// Results of a step, by name. NaN and infinities are allowed and are reported unchanged.
using Metrics = std::map<std::string, double>;

// One line for people: "accuracy 0.8512  loss 0.4127".
std::string ToText(const Metrics& metrics);

}  // namespace attune::inline sdk
