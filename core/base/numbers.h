#pragma once

#include <limits>

namespace attune {

// Special values of a double.
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace attune
