#pragma once

#include <algorithm>
#include <chrono>

namespace attune::server {

inline constexpr std::chrono::seconds kRetryDelay{5};  // the first delay after a failure
inline constexpr std::chrono::seconds kRetryDelayMax{320};

// The delay after a further failure. `last` is the delay after the one before; 0: there was none.
inline std::chrono::seconds NextRetryDelay(std::chrono::seconds last) {
  return std::clamp(2 * last, kRetryDelay, kRetryDelayMax);
}

}  // namespace attune::server
