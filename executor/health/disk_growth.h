#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "executor/gang/spec.h"
#include "executor/processes/boot_clock.h"

namespace attune::agent {

// The disk space that files below some folders take.
struct DiskUse {
  struct File {
    std::filesystem::path path;
    uint64_t bytes = 0;
  };

  uint64_t bytes = 0;
  uint64_t new_bytes = 0;     // of files that were written within DiskGrowth::kPeriod
  std::vector<File> largest;  // the largest first
};

// Measures at most `files_max` files and returns the `largest_max` largest of them.
DiskUse MeasureDiskUse(const std::vector<std::filesystem::path>& folders, size_t files_max,
                       size_t largest_max);

// Formats `the largest files: /data/a (3.1 GiB), /data/b (64 MiB)`; empty if no file has 1 MiB.
std::string LargestFiles(const DiskUse& use);

// Finds the gang whose files grew most in the last minute, to end it if the disk is short. Has no
// side effects.
class DiskGrowth {
 public:
  using Clock = gang::BootClock;
  static constexpr std::chrono::seconds kPeriod{60};

  struct Filler {
    gang::AttemptId attempt;
    uint64_t grown_bytes = 0;
  };

  // Adds the disk use of each running gang at time `now`.
  void Add(const std::map<gang::AttemptId, DiskUse>& uses, Clock::time_point now);

  // Returns the gang to end while less than `free_bytes_min` is free; nullopt: no gang has grown by
  // an eighth of that. If it returns a gang, growth counts from zero again, because ending that
  // gang may free enough.
  std::optional<Filler> TakeFiller(uint64_t free_bytes_min);

 private:
  struct Sample {
    Clock::time_point at;
    uint64_t bytes = 0;
  };

  std::map<gang::AttemptId, std::deque<Sample>> samples_;  // the first is about kPeriod old
};

}  // namespace attune::agent
