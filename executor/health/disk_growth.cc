#include "executor/health/disk_growth.h"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>

#include "executor/health/size_text.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kBlockBytes = 512;  // unit of st_blocks on all file systems
constexpr uint64_t kNamedBytesMin = uint64_t{1} << 20;
// Smaller growth than this share of the minimum does not count.
constexpr uint64_t kGrowthShare = 8;

void AddFile(const fs::path& path, const struct stat& status, size_t largest_max, DiskUse& use) {
  const uint64_t bytes = static_cast<uint64_t>(status.st_blocks) * kBlockBytes;
  use.bytes += bytes;
  if (std::time(nullptr) - status.st_mtime <= DiskGrowth::kPeriod.count()) use.new_bytes += bytes;
  use.largest.push_back({path, bytes});
  std::ranges::sort(use.largest, std::ranges::greater{}, &DiskUse::File::bytes);
  if (use.largest.size() > largest_max) use.largest.pop_back();
}

}  // namespace

DiskUse MeasureDiskUse(const std::vector<fs::path>& folders, size_t files_max, size_t largest_max) {
  DiskUse use;
  size_t files = 0;
  for (const fs::path& folder : folders) {
    std::error_code failed;
    for (auto entry = fs::recursive_directory_iterator(
             folder, fs::directory_options::skip_permission_denied, failed);
         !failed && entry != fs::recursive_directory_iterator() && files < files_max;
         entry.increment(failed), ++files) {
      struct stat status {};
      if (lstat(entry->path().c_str(), &status) == 0 && S_ISREG(status.st_mode))
        AddFile(entry->path(), status, largest_max, use);
    }
  }
  return use;
}

std::string LargestFiles(const DiskUse& use) {
  std::string text;
  for (const DiskUse::File& file : use.largest) {
    if (file.bytes < kNamedBytesMin) break;
    text += (text.empty() ? "the largest files: " : ", ") + file.path.string() + " (" +
            SizeText(file.bytes) + ")";
  }
  return text;
}

void DiskGrowth::Add(const std::map<gang::AttemptId, DiskUse>& uses, Clock::time_point now) {
  std::erase_if(samples_, [&](const auto& entry) { return !uses.contains(entry.first); });
  for (const auto& [attempt, use] : uses) {
    std::deque<Sample>& samples = samples_[attempt];
    // Modification times show how much grew before the first measurement.
    if (samples.empty()) samples.push_back({now, use.bytes - use.new_bytes});
    samples.push_back({now, use.bytes});
    while (samples.size() > 1 && now - samples[1].at >= kPeriod) samples.pop_front();
  }
}

std::optional<DiskGrowth::Filler> DiskGrowth::TakeFiller(uint64_t free_bytes_min) {
  std::optional<Filler> most;
  for (const auto& [attempt, samples] : samples_) {
    const uint64_t before = samples.front().bytes;
    const uint64_t after = samples.back().bytes;
    const uint64_t grown = after > before ? after - before : 0;
    if (grown > 0 && grown >= free_bytes_min / kGrowthShare && (!most || grown > most->grown_bytes))
      most = {attempt, grown};
  }
  if (!most) return most;
  samples_.erase(most->attempt);
  for (auto& [attempt, samples] : samples_) samples.erase(samples.begin(), samples.end() - 1);
  return most;
}

}  // namespace attune::agent
