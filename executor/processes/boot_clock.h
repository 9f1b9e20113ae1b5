#pragma once

#include <time.h>

#include <chrono>

namespace attune::gang {

// Time since the machine started. Unlike std::chrono::steady_clock, it also advances while the
// machine is suspended, so that a suspended host does not extend its leases.
struct BootClock {
  using duration = std::chrono::microseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;

  static time_point now() {
    timespec time{};
    clock_gettime(CLOCK_BOOTTIME, &time);
    return time_point(std::chrono::duration_cast<duration>(std::chrono::seconds(time.tv_sec) +
                                                           std::chrono::nanoseconds(time.tv_nsec)));
  }
};

}  // namespace attune::gang
