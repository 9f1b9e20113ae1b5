#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "executor/health/host_health.h"
#include "executor/processes/boot_clock.h"

namespace attune::agent {

// Looks again and again, on a thread of its own: a file system or a driver that hangs stops no
// heartbeat. That it hangs is then the problem. An executor that ends waits for the look under way,
// as for what it deletes and fetches: what hangs in the kernel would not let the process end
// anyway.
class HealthWatch {
 public:
  static constexpr std::chrono::milliseconds kEvery{5'000};
  static constexpr std::chrono::milliseconds kPatience{30'000};  // with what is looked at

  // `looked` is called after each look, on the watch's thread; it must not destroy the watch.
  HealthWatch(HealthCheck check, std::function<void(const HostHealth&)> looked,
              std::chrono::milliseconds every = kEvery);
  ~HealthWatch();

  // A write to the disk has failed for lack of room: there was so much, and that was not enough.
  // Any thread.
  void OnDiskFull(uint64_t room_bytes, gang::BootClock::time_point now);

  // What was seen last; nothing wrong before the first look is done. Any thread.
  HostHealth Latest(gang::BootClock::time_point now) const;

 private:
  void Run();

  HealthCheck check_;
  const std::function<void(const HostHealth&)> looked_;
  const std::chrono::milliseconds every_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  HostHealth latest_;  // under mutex_, as is all below
  FullDisk full_;
  std::string at_;                     // what it looks at now; empty: at nothing
  gang::BootClock::time_point since_;  // when that began
  bool look_now_ = false;
  bool stop_ = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace attune::agent
