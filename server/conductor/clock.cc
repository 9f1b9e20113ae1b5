#include "server/conductor/clock.h"

#include <chrono>

namespace attune::server {
namespace {

int64_t Microseconds(auto duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

}  // namespace

Clock WallClock() {
  return [] { return Time{Microseconds(std::chrono::system_clock::now().time_since_epoch())}; };
}

Clock SteadyClock() {
  const int64_t wall_us = WallClock()().us;
  const auto began = std::chrono::steady_clock::now();
  return [wall_us, began] {
    return Time{wall_us + Microseconds(std::chrono::steady_clock::now() - began)};
  };
}

}  // namespace attune::server
