#include "executor/health/host_resources.h"

#include <sched.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "base/result.h"
#include "executor/gang/preparation.h"
#include "executor/processes/cgroup.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;

// Calls `visit` with every cgroup folder from the visible root down to this process's cgroup.
template <typename Visit>
void ForEachCgroup(const SystemRoots& roots, Visit visit) {
  const Result<gang::OwnCgroup> own = gang::FindOwnCgroup(roots.proc);
  if (!own.ok()) return;
  fs::path folder = own.value().mount;
  visit(folder);
  for (const fs::path& part : own.value().below) visit(folder /= part);
}

uint32_t Cpus(const SystemRoots& roots) {
  cpu_set_t set;
  CPU_ZERO(&set);
  double cpus = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  ForEachCgroup(roots, [&](const fs::path& folder) {
    std::ifstream file(folder / "cpu.max");  // `max 100000` or `150000 100000`
    double quota_us = 0;
    double period_us = 0;
    if (file >> quota_us >> period_us && period_us > 0) cpus = std::min(cpus, quota_us / period_us);
  });
  return static_cast<uint32_t>(std::max(1.0, std::floor(cpus)));
}

// nullopt if the file has no number, for example with a limit of `max`.
std::optional<uint64_t> ReadNumber(const fs::path& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

// The memory of a cgroup that the kernel can reclaim: page cache without tmpfs, and kernel caches.
uint64_t ReclaimableBytes(const fs::path& folder) {
  std::ifstream file(folder / "memory.stat");
  uint64_t all = 0;
  std::string name;
  for (uint64_t bytes = 0; file >> name >> bytes;) {
    if (name == "inactive_file" || name == "active_file" || name == "slab_reclaimable")
      all += bytes;
  }
  return all;
}

uint32_t GpusOfTheHost(const SystemRoots& roots) {
  std::error_code failed;
  uint32_t listed = 0;
  for (const auto& entry : fs::directory_iterator(roots.proc / "driver/nvidia/gpus", failed)) {
    listed += entry.exists();
  }
  if (listed > 0) return listed;
  // A container may hide the driver's list but not the devices.
  constexpr std::string_view kPrefix = "nvidia";
  uint32_t devices = 0;
  for (const auto& entry : fs::directory_iterator(roots.dev, failed)) {
    const std::string name = entry.path().filename();
    devices += name.size() > kPrefix.size() && name.starts_with(kPrefix) &&
               std::all_of(name.begin() + kPrefix.size(), name.end(),
                           [](unsigned char c) { return std::isdigit(c); });
  }
  return devices;
}

// The number of GPUs that this process may use: all of the host, or the ones it was given by name.
uint32_t Gpus(const SystemRoots& roots) {
  const uint32_t all = GpusOfTheHost(roots);
  const auto given = gang::AllowedGpus();
  return all > 0 && given ? static_cast<uint32_t>(given->size()) : all;
}

}  // namespace

HostMemory DetectMemory(const SystemRoots& roots) {
  constexpr uint64_t kUnknown = std::numeric_limits<uint64_t>::max();
  HostMemory memory{.bytes = kUnknown};
  std::ifstream meminfo(roots.proc / "meminfo");
  for (std::string line; std::getline(meminfo, line);) {
    std::istringstream words(line);
    std::string name;
    uint64_t kibibytes = 0;
    if (!(words >> name >> kibibytes)) continue;
    if (name == "MemTotal:") memory.bytes = kibibytes * 1024;
    if (name == "MemAvailable:") memory.free_bytes = kibibytes * 1024;
  }
  ForEachCgroup(roots, [&](const fs::path& folder) {
    const std::optional<uint64_t> limit = ReadNumber(folder / "memory.max");
    if (!limit) return;
    memory.bytes = std::min(memory.bytes, *limit);
    const std::optional<uint64_t> used = ReadNumber(folder / "memory.current");
    if (!used) return;
    const uint64_t needed = *used - std::min(*used, ReclaimableBytes(folder));
    const uint64_t left = *limit - std::min(*limit, needed);
    memory.free_bytes = std::min(memory.free_bytes.value_or(left), left);
  });
  if (memory.bytes == kUnknown) memory.bytes = 0;
  return memory;
}

HostResources DetectResources(const SystemRoots& roots) {
  return {.cpus = Cpus(roots), .gpus = Gpus(roots), .memory_bytes = DetectMemory(roots).bytes};
}

}  // namespace attune::agent
