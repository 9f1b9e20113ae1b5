// A library for LD_PRELOAD. It sets the wall clock of a program CLOCK_OFF_SECONDS ahead and leaves
// all other clocks unchanged.
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

namespace {

time_t Off() {
  static const time_t off = [] {
    const char* const text = getenv("CLOCK_OFF_SECONDS");
    return text == nullptr ? 0 : atol(text);
  }();
  return off;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const long failed = syscall(SYS_clock_gettime, clock, time);
  if (failed == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    time->tv_sec += Off();
  return static_cast<int>(failed);
}

int gettimeofday(timeval* __restrict time, void* __restrict) noexcept {
  timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* out) noexcept {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}
}
