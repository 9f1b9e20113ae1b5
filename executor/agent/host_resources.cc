#include "executor/agent/host_resources.h"

#include <sched.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

#include "executor/gang/preparation.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;

// This process's folder in the unified hierarchy, e.g. `user.slice/session-1.scope`.
fs::path OwnCgroup(const fs::path& proc) {
  std::ifstream file(proc / "self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("0::/")) return line.substr(4);
  }
  return {};
}

// Calls `visit` with every cgroup folder from the root down to this process's own.
template <typename Visit>
void ForEachCgroup(const SystemRoots& roots, Visit visit) {
  fs::path folder = roots.cgroup;
  visit(folder);
  for (const fs::path& part : OwnCgroup(roots.proc)) {
    folder /= part;
    visit(folder);
  }
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

uint64_t MemoryBytes(const SystemRoots& roots) {
  uint64_t bytes = std::numeric_limits<uint64_t>::max();
  std::ifstream meminfo(roots.proc / "meminfo");
  std::string name;
  uint64_t kibibytes = 0;
  if (meminfo >> name >> kibibytes && name == "MemTotal:") bytes = kibibytes * 1024;
  ForEachCgroup(roots, [&](const fs::path& folder) {
    std::ifstream file(folder / "memory.max");
    uint64_t limit = 0;
    if (file >> limit) bytes = std::min(bytes, limit);
  });
  return bytes == std::numeric_limits<uint64_t>::max() ? 0 : bytes;
}

uint32_t GpusOfTheHost(const SystemRoots& roots) {
  std::error_code failed;
  uint32_t listed = 0;
  for (const auto& entry : fs::directory_iterator(roots.proc / "driver/nvidia/gpus", failed)) {
    listed += entry.exists();
  }
  if (listed > 0) return listed;
  // In a container the driver's list may be hidden, but not the devices.
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

// Those that this process may use: all of the host's, or those that it was given by name.
uint32_t Gpus(const SystemRoots& roots) {
  const uint32_t all = GpusOfTheHost(roots);
  const auto given = gang::GivenGpus();
  return all > 0 && given ? static_cast<uint32_t>(given->size()) : all;
}

}  // namespace

HostResources DetectResources(const SystemRoots& roots) {
  return {.cpus = Cpus(roots), .gpus = Gpus(roots), .memory_bytes = MemoryBytes(roots)};
}

}  // namespace attune::agent
