#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "executor/gang/channel_types.h"
#include "system/unique_fd.h"

namespace attune::agent {

struct NameLock {
  UniqueFd fd;
  std::filesystem::path folder;  // absolute path of the files kept for the name
  int64_t started_us = 0;        // v1::Hello::started_us
};

// The start time of a process. It is later than the start of the previous process of that name,
// even if the clock was set back.
constexpr int64_t NextStartTime(int64_t previous_us, int64_t wall_us) {
  return wall_us > previous_us ? wall_us : previous_us + 1;
}

// Locks `<data>/executors/<name>/lock` for the lifetime of the result, so that only one executor of
// that name runs on a data folder. The kernel releases the lock when the process ends. The start
// time is saved next to the lock for the next process.
Result<NameLock> LockName(const std::filesystem::path& data, const std::string& name,
                          int64_t wall_us);

}  // namespace attune::agent
