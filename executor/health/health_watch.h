#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "executor/health/disk_growth.h"
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
  static constexpr std::chrono::milliseconds kEveryWhenNear{1'000};  // a disk is nearly short
  static constexpr std::chrono::milliseconds kPatience{30'000};      // with what is looked at

  // Called on the watch's thread; must not destroy the watch.
  struct Events {
    std::function<void(const HostHealth&)> looked;  // after each look
    // A gang's files fill the disk, so that it should end. The text says so.
    std::function<void(const gang::AttemptId&, std::string)> fills_disk;
  };

  HealthWatch(HealthCheck check, Events events, std::chrono::milliseconds every = kEvery);
  ~HealthWatch();

  // A gang writes to these folders until OnGangGone(). Any thread, as with all below.
  void OnGang(const gang::AttemptId& attempt, std::vector<std::filesystem::path> folders);
  void OnGangGone(const gang::AttemptId& attempt);

  // A write to the disk has failed for lack of room: there was so much, and that was not enough.
  void OnDiskFull(uint64_t room_bytes, gang::BootClock::time_point now);

  // What was seen last; nothing wrong before the first look is done.
  HostHealth Latest(gang::BootClock::time_point now) const;

 private:
  using Folders = std::vector<std::filesystem::path>;

  void Run();
  void LookForFiller(const HostHealth& seen);

  HealthCheck check_;
  const Events events_;
  const std::chrono::milliseconds every_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  HostHealth latest_;  // under mutex_, as is all below
  FullDisk full_;
  std::map<gang::AttemptId, Folders> gangs_;
  std::string at_;                     // what it looks at now; empty: at nothing
  gang::BootClock::time_point since_;  // when that began
  bool look_now_ = false;
  DiskGrowth growth_;  // the watch's thread alone uses it
  bool stop_ = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace attune::agent
