#pragma once

#include <algorithm>
#include <chrono>
#include <random>

namespace attune::agent {

// Pauses between attempts to connect. They start short and double up to a limit. Random jitter
// keeps executors from reconnecting all at once.
class Backoff {
 public:
  static constexpr std::chrono::milliseconds kFirst{50};
  static constexpr std::chrono::milliseconds kMax{5'000};

  explicit Backoff(uint64_t seed) : random_(seed) {}

  // A random duration between half of the current pause and the whole pause; doubles the pause.
  std::chrono::milliseconds Next() {
    const std::chrono::milliseconds pause = next_;
    next_ = std::min(2 * next_, kMax);
    return std::chrono::milliseconds(
        std::uniform_int_distribution<int64_t>(pause.count() / 2, pause.count())(random_));
  }

  void Reset() { next_ = kFirst; }

 private:
  std::mt19937_64 random_;
  std::chrono::milliseconds next_ = kFirst;
};

}  // namespace attune::agent
