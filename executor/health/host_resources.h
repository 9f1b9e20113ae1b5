#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

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
  std::filesystem::path dev = "/dev";
};

struct HostMemory {
  uint64_t bytes = 0;  // 0: not known
  std::optional<uint64_t> free_bytes;
};

// CPUs: those this process may run on, less where a cgroup v2 grants less time, at least 1.
// Memory: the host's, less where a cgroup v2 grants less. Both limits may stand at any level
// between this process's cgroup and the root. GPUs: NVIDIA's, as its driver lists them.
HostResources DetectResources(const SystemRoots& roots = {});

// The host's memory or, where a cgroup v2 has less left, that one's: its limit less what is in use
// and could not be taken back, as page cache could.
HostMemory DetectMemory(const SystemRoots& roots = {});

}  // namespace attune::agent
