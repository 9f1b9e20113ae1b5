#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace attune::agent {

// Resources of a host that gangs can use.
struct HostResources {
  uint32_t cpus = 0;
  uint32_t gpus = 0;
  uint64_t memory_bytes = 0;
};

// Roots of the system's file trees; tests use other ones.
struct SystemRoots {
  std::filesystem::path proc = "/proc";
  std::filesystem::path dev = "/dev";
};

struct HostMemory {
  uint64_t bytes = 0;  // 0: not known
  std::optional<uint64_t> free_bytes;
};

// CPUs: the ones that this process may run on, limited by the CPU time of its cgroup v2; at least
// 1. Memory: the host's, limited by its cgroup v2. Both limits may be set at any level from this
// process's cgroup to the root. GPUs: the ones that NVIDIA's driver lists.
HostResources DetectResources(const SystemRoots& roots = {});

// The memory of the host or, if less is left there, of a cgroup v2: its limit minus the memory that
// is in use and not reclaimable. Page cache is reclaimable.
HostMemory DetectMemory(const SystemRoots& roots = {});

}  // namespace attune::agent
