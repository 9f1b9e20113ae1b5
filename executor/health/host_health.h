#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "executor/gang/words.h"
#include "executor/health/gpu_health.h"
#include "executor/health/host_resources.h"
#include "executor/processes/boot_clock.h"

namespace attune::agent {

// What has to be free, or a fiftieth of all there is, if that is less. Where a limit is said, that
// is it.
inline constexpr uint64_t kDiskFreeBytesMin = uint64_t{1} << 30;
inline constexpr uint64_t kDiskFreeFilesMin = 10'000;
inline constexpr uint64_t kMemoryFreeBytesMin = uint64_t{256} << 20;

struct HealthLimits {
  std::optional<uint64_t> disk_free_bytes;  // 0: a disk is never a problem
  std::optional<uint64_t> memory_free_bytes;
};

struct FileSystem {
  uint64_t bytes = 0;
  uint64_t free_bytes = 0;  // for those without privileges
  uint64_t files = 0;       // 0: it has as many as it likes
  uint64_t free_files = 0;
};

Result<FileSystem> ReadFileSystem(const std::filesystem::path& folder);

// How much is to stay free on that file system, in bytes and in files, and of that memory.
uint64_t DiskFreeMin(const HealthLimits& limits, const FileSystem& disk);
uint64_t FilesFreeMin(const FileSystem& disk);
uint64_t MemoryFreeMin(const HealthLimits& limits, const HostMemory& memory);

struct HostHealth {
  void Add(const std::string& another);  // to the problem; empty: nothing is added

  // Why no gang should start here, as one sentence's end; empty: one may. While a problem lasts its
  // text stays, with the figures of when it was found.
  std::string problem;
  uint64_t disk_free_bytes = 0;  // 0: not known, as below
  uint64_t memory_free_bytes = 0;
  uint64_t disk_bytes_min = 0;  // what is to stay free; 0: the disk is never a problem
  bool disk_is_short = false;   // less is free than a problem would take to end, or there is one
};

// Something that has a limit, and is well again only at 1.25 times of it: what a gang frees when it
// fails for lack of it brings no other one at once.
class LowMark {
 public:
  // The text of the problem; empty: none. `words` gives it where one begins.
  const std::string& Judge(uint64_t free, uint64_t limit,
                           const std::function<std::string()>& words);

 private:
  std::string problem_;
};

// A disk or a quota that was full when something was written. That is a problem until a quarter
// more is free than the room that was not enough. It is one for kLasts at most, because nobody
// knows what a quota leaves.
class FullDisk {
 public:
  using Clock = gang::BootClock;
  static constexpr std::chrono::minutes kLasts{5};

  void Note(uint64_t room_bytes, Clock::time_point now);

  // What is free, as a look found that began then.
  void OnLook(uint64_t free_bytes, Clock::time_point began);

  // The end of a sentence; empty: there is no problem. `folder` lies on the disk.
  std::string Problem(const std::filesystem::path& folder, Clock::time_point now) const;

 private:
  std::optional<Clock::time_point> noted_at_;  // nullopt: there is room
  uint64_t room_bytes_ = 0;
};

// Looks at the data folder's file system, at memory and at GPUs. Used by one thread, for as long as
// these take to answer.
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

  // `begins` is told what it looks at next: "its disk (/data)".
  HostHealth Look(const std::function<void(std::string)>& begins);

  const std::filesystem::path& data_dir() const { return options_.data_dir; }
  bool judges_disk() const { return options_.limits.disk_free_bytes != 0; }

 private:
  void LookAtDisk(HostHealth& health);
  void LookAtMemory(HostHealth& health);

  const Options options_;
  GpuHealth gpus_;
  LowMark disk_;
  LowMark files_;
  LowMark memory_;
};

}  // namespace attune::agent
