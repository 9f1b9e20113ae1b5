#pragma once

#include <cstdint>
#include <filesystem>

namespace attune::agent {

// What a host has to give to gangs.
struct HostResources {
  uint32_t cpus = 0;
  uint32_t gpus = 0;
  uint64_t memory_bytes = 0;
};

// Where the system shows itself; a test shows another one.
struct SystemRoots {
  std::filesystem::path proc = "/proc";
  std::filesystem::path cgroup = "/sys/fs/cgroup";
  std::filesystem::path dev = "/dev";
};

// CPUs: those this process may run on, less where a cgroup v2 grants less time, at least 1.
// Memory: the host's, less where a cgroup v2 grants less. Both limits may stand at any level
// between this process's cgroup and the root. GPUs: NVIDIA's, as its driver lists them.
HostResources DetectResources(const SystemRoots& roots = {});

}  // namespace attune::agent
