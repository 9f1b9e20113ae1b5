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

// What files below some folders take on their disk.
struct DiskUse {
  struct File {
    std::filesystem::path path;
    uint64_t bytes = 0;
  };

  uint64_t bytes = 0;
  uint64_t new_bytes = 0;     // of files that were written to within DiskGrowth::kPeriod
  std::vector<File> largest;  // the largest first
};

// Looks at `files_max` files at most, and keeps the `largest_max` largest of them.
DiskUse MeasureDiskUse(const std::vector<std::filesystem::path>& folders, size_t files_max,
                       size_t largest_max);

// `the largest files: /data/a (3.1 GiB), /data/b (64 MiB)`; empty: none has a MiB.
std::string LargestFiles(const DiskUse& use);

// Finds the gang whose files grew most in the last minute, on a disk that has too little left.
// Pure.
class DiskGrowth {
 public:
  using Clock = gang::BootClock;
  static constexpr std::chrono::seconds kPeriod{60};

  struct Filler {
    gang::AttemptId attempt;
    uint64_t grown_bytes = 0;
  };

  // What each gang that runs takes of the disk, at this time.
  void Add(const std::map<gang::AttemptId, DiskUse>& uses, Clock::time_point now);

  // The gang to end while less is free than `floor_bytes`; nullopt: none has grown by an eighth of
  // that. Growth counts from here on if there is one, because its end may be enough.
  std::optional<Filler> TakeFiller(uint64_t floor_bytes);

 private:
  struct Sample {
    Clock::time_point at;
    uint64_t bytes = 0;
  };

  std::map<gang::AttemptId, std::deque<Sample>> samples_;  // the oldest is about kPeriod old
};

}  // namespace attune::agent
