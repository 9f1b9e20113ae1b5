#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "executor/gang/channel_types.h"
#include "executor/health/gpu_health.h"
#include "executor/health/host_resources.h"
#include "executor/processes/boot_clock.h"

namespace attune::agent {

// Default minimums of free resources; 2% of the total if that is less. HealthLimits overrides them.
inline constexpr uint64_t kDiskFreeBytesMin = uint64_t{1} << 30;
inline constexpr uint64_t kDiskFreeFilesMin = 10'000;
inline constexpr uint64_t kMemoryFreeBytesMin = uint64_t{256} << 20;

struct HealthLimits {
  std::optional<uint64_t> disk_free_bytes;  // 0: a short disk is never a problem
  std::optional<uint64_t> memory_free_bytes;
};

struct FileSystem {
  uint64_t bytes = 0;
  uint64_t free_bytes = 0;  // available without privileges
  uint64_t files = 0;       // 0: no limit on the number of files
  uint64_t free_files = 0;
};

Result<FileSystem> ReadFileSystem(const std::filesystem::path& folder);

// The bytes and the number of files that must stay free on a file system, and the free memory.
uint64_t DiskFreeMin(const HealthLimits& limits, const FileSystem& disk);
uint64_t FilesFreeMin(const FileSystem& disk);
uint64_t MemoryFreeMin(const HealthLimits& limits, const HostMemory& memory);

struct HostHealth {
  void Add(const std::string& another);  // appends to `problem`; ignores an empty string

  // A clause that says why no gang should start here; empty: no problem. The text stays the same
  // while the problem lasts, with the numbers from its beginning.
  std::string problem;
  uint64_t disk_free_bytes = 0;  // 0: not known
  uint64_t memory_free_bytes = 0;
  uint64_t disk_bytes_min = 0;  // minimum; 0: a short disk is never a problem
  // A disk problem exists, or would not end with the current free space.
  bool disk_is_short = false;
};

// Watches a resource with a lower limit. A problem begins below the limit and ends at 1.25 times
// the limit. So the space that a failed gang frees does not start the next gang immediately.
class LowWatermark {
 public:
  // Returns the text of the problem; empty: none. `describe` makes the text when a problem begins.
  const std::string& Update(uint64_t free, uint64_t limit,
                            const std::function<std::string()>& describe);

 private:
  std::string problem_;
};

// A disk or a quota that was full during a write. The problem ends when 25% more is free than at
// that time, and after kLasts at the latest, because the free space of a quota is not known.
class FullDisk {
 public:
  using Clock = gang::BootClock;
  static constexpr std::chrono::minutes kLasts{5};

  void OnFull(uint64_t room_bytes, Clock::time_point now);

  // A check that began at `began` found this free space.
  void OnCheck(uint64_t free_bytes, Clock::time_point began);

  // A clause; empty: no problem. `folder` is a folder on the disk, for the message.
  std::string Problem(const std::filesystem::path& folder, Clock::time_point now) const;

 private:
  std::optional<Clock::time_point> noted_at_;  // nullopt: not full
  uint64_t room_bytes_ = 0;
};

// Checks the file system of the data folder, the memory and the GPUs. Not thread-safe; blocks until
// these answer.
class HealthCheck {
 public:
  struct Options {
    std::filesystem::path data_dir;
    HealthLimits limits;
    SystemRoots roots;
    std::function<Result<FileSystem>(const std::filesystem::path&)> read_disk = ReadFileSystem;
  };

  HealthCheck(Options options, GpuHealth gpus)
      : options_(std::move(options)), gpus_(std::move(gpus)) {}

  // Calls `begins` with the name of each target before its check: "its disk (/data)".
  HostHealth Check(const std::function<void(std::string)>& begins);

  const std::filesystem::path& data_dir() const { return options_.data_dir; }
  bool judges_disk() const { return options_.limits.disk_free_bytes != 0; }

 private:
  void CheckDisk(HostHealth& health);
  void CheckMemory(HostHealth& health);

  const Options options_;
  GpuHealth gpus_;
  LowWatermark disk_;
  LowWatermark files_;
  LowWatermark memory_;
};

}  // namespace attune::agent
