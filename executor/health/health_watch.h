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

// Checks the health of the host periodically on its own thread, so that a hanging file system or
// driver does not stop heartbeats. The hang is then reported as a problem. The destructor waits for
// the current check; a process that hangs in the kernel could not end anyway.
class HealthWatch {
 public:
  static constexpr std::chrono::milliseconds kEvery{5'000};
  static constexpr std::chrono::milliseconds kEveryIfNearlyShort{1'000};
  // A check that takes longer is a problem.
  static constexpr std::chrono::milliseconds kAnswerTimeout{30'000};

  // Called on the watch's thread; must not destroy the watch.
  struct Events {
    std::function<void(const HostHealth&)> checked;  // after each check
    // The files of this gang fill the disk, so it should be ended. The string is the message for
    // users.
    std::function<void(const gang::AttemptId&, std::string)> fills_disk;
  };

  HealthWatch(HealthCheck check, Events events, std::chrono::milliseconds every = kEvery);
  ~HealthWatch();

  // A gang writes to these folders until OnGangGone(). This and the functions below are
  // thread-safe.
  void OnGangStarted(const gang::AttemptId& attempt, std::vector<std::filesystem::path> folders);
  void OnGangGone(const gang::AttemptId& attempt);

  // A write has failed because the disk was full, although `room_bytes` were free.
  void OnDiskFull(uint64_t room_bytes, gang::BootClock::time_point now);

  // The result of the last check; no problem before the first check has finished.
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
  HostHealth latest_;  // this and the members below: under mutex_
  FullDisk full_;
  std::map<gang::AttemptId, Folders> gangs_;
  std::string at_;                     // target of the current check; empty: none
  gang::BootClock::time_point since_;  // start of the current check
  bool check_now_ = false;
  DiskGrowth growth_;  // used only on the watch's thread
  bool stop_ = false;

  std::thread thread_;  // declared last: it uses all members above
};

}  // namespace attune::agent
