#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "executor/gang/words.h"
#include "system/unique_fd.h"

namespace attune::agent {

struct NameLock {
  UniqueFd fd;
  std::filesystem::path folder;  // what is kept of the name; absolute
  int64_t started_us = 0;        // v1::Hello::started_us
};

// When a process starts at `wall_us`, and the last of its name did at `previous_us`: later than
// that, even if the clock has been set back since.
constexpr int64_t StartAfter(int64_t previous_us, int64_t wall_us) {
  return wall_us > previous_us ? wall_us : previous_us + 1;
}

// Takes `<data>/executors/<name>/lock` for as long as the result lives, so that two executors of
// one name cannot run on one data folder. The kernel gives it back however the process ends. When
// the process started is kept beside it, for the next one.
Result<NameLock> LockName(const std::filesystem::path& data, const std::string& name,
                          int64_t wall_us);

}  // namespace attune::agent
