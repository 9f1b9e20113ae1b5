#include "executor/health/host_health.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "executor/health/disk_growth.h"
#include "executor/health/size_text.h"
#include "system/system_error.h"

namespace attune::agent {
namespace {

uint64_t DefaultMinimum(uint64_t usual, uint64_t all) { return std::min(usual, all / 50); }

uint64_t WellAgainAt(uint64_t limit) { return limit + limit / 4; }

// Maximum number of files that are measured, and number of largest files in the message.
constexpr size_t kDataFilesMax = 100'000;
constexpr size_t kLargestOfData = 3;

}  // namespace

Result<FileSystem> ReadFileSystem(const std::filesystem::path& folder) {
  struct statvfs told {};
  if (statvfs(folder.c_str(), &told) != 0) return SystemError("statvfs", errno);
  return FileSystem{.bytes = told.f_blocks * told.f_frsize,
                    .free_bytes = told.f_bavail * told.f_frsize,
                    .files = told.f_files,
                    .free_files = told.f_favail};
}

uint64_t DiskFreeMin(const HealthLimits& limits, const FileSystem& disk) {
  return limits.disk_free_bytes.value_or(DefaultMinimum(kDiskFreeBytesMin, disk.bytes));
}

uint64_t FilesFreeMin(const FileSystem& disk) {
  return DefaultMinimum(kDiskFreeFilesMin, disk.files);
}

uint64_t MemoryFreeMin(const HealthLimits& limits, const HostMemory& memory) {
  return limits.memory_free_bytes.value_or(DefaultMinimum(kMemoryFreeBytesMin, memory.bytes));
}

void HostHealth::Add(const std::string& another) {
  if (another.empty()) return;
  problem += (problem.empty() ? "" : "; ") + another;
}

void FullDisk::OnFull(uint64_t room_bytes, Clock::time_point now) {
  noted_at_ = now;
  room_bytes_ = room_bytes;
}

// Ignores a check that began before the disk was full: its free space may be used up since.
void FullDisk::OnCheck(uint64_t free_bytes, Clock::time_point began) {
  if (noted_at_ && began > *noted_at_ && free_bytes >= WellAgainAt(room_bytes_)) noted_at_.reset();
}

std::string FullDisk::Problem(const std::filesystem::path& folder, Clock::time_point now) const {
  if (!noted_at_ || now - *noted_at_ >= kLasts) return "";
  return "its disk, or a quota, was full with " + SizeText(room_bytes_) + " left (" +
         folder.string() + ")";
}

const std::string& LowWatermark::Update(uint64_t free, uint64_t limit,
                                        const std::function<std::string()>& describe) {
  if (problem_.empty() && free < limit) problem_ = describe();
  if (free >= WellAgainAt(limit)) problem_.clear();
  return problem_;
}

HostHealth HealthCheck::Check(const std::function<void(std::string)>& begins) {
  HostHealth health;
  begins("its disk (" + options_.data_dir.string() + ")");
  CheckDisk(health);
  begins("its memory");
  CheckMemory(health);
  begins("its driver for GPUs");
  for (const std::string& problem : gpus_.Check()) health.Add(problem);
  return health;
}

void HealthCheck::CheckDisk(HostHealth& health) {
  const std::string where = " (" + options_.data_dir.string() + ")";
  const Result<FileSystem> read = options_.read_disk(options_.data_dir);
  const bool is_judged = options_.limits.disk_free_bytes != 0;
  if (!read.ok()) {
    if (is_judged)
      health.Add("the free space of its disk cannot be read" + where + ": " + read.error().message);
    return;
  }
  const FileSystem& disk = read.value();
  health.disk_free_bytes = disk.free_bytes;
  if (!is_judged) return;
  const uint64_t bytes_min = DiskFreeMin(options_.limits, disk);
  health.disk_bytes_min = bytes_min;
  health.disk_is_short = disk.free_bytes < WellAgainAt(bytes_min);
  health.Add(disk_.Update(disk.free_bytes, bytes_min, [&] {
    const std::string largest =
        LargestFiles(MeasureDiskUse({options_.data_dir}, kDataFilesMax, kLargestOfData));
    return "its disk has " + SizeText(disk.free_bytes) + " left" + where + ", less than " +
           SizeText(bytes_min) + (largest.empty() ? "" : "; " + largest);
  }));
  if (disk.files == 0) return;
  const uint64_t files_min = FilesFreeMin(disk);
  health.disk_is_short |= disk.free_files < WellAgainAt(files_min);
  health.Add(files_.Update(disk.free_files, files_min, [&] {
    return "its disk has room for " + std::to_string(disk.free_files) + " more files" + where +
           ", less than " + std::to_string(files_min);
  }));
}

void HealthCheck::CheckMemory(HostHealth& health) {
  const HostMemory memory = DetectMemory(options_.roots);
  if (!memory.free_bytes) return;
  health.memory_free_bytes = *memory.free_bytes;
  const uint64_t limit = MemoryFreeMin(options_.limits, memory);
  health.Add(memory_.Update(*memory.free_bytes, limit, [&] {
    return "its memory has " + SizeText(*memory.free_bytes) + " left, less than " + SizeText(limit);
  }));
}

}  // namespace attune::agent
