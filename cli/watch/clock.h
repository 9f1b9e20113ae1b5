#pragma once

#include <chrono>

namespace attune::cli {

// By this host's clock.
inline double SecondsSince1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

}  // namespace attune::cli
