#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace attune::cli {

// The facts that `attune doctor` checks, as plain values, so that a test can describe any host. A
// `fault` is empty if there is none.

struct DescriptorFacts {
  uint64_t soft = 0;  // limits of this process
  uint64_t hard = 0;
  uint64_t server_full = 0;   // a server with all the connections that it allows
  uint64_t server_least = 0;  // a server with the fewest connections that it works with
};

struct MemoryFacts {
  uint64_t bytes = 0;         // 0: not known
  uint64_t free_bytes = 0;    // 0: not known
  uint64_t needed_bytes = 0;  // an executor with less free memory starts no trial
};

struct CgroupFacts {
  std::string fault;  // why an executor cannot make cgroups
  uint32_t cpus = 0;  // available to trials, within the limits of this process's cgroup
};

struct GpuFacts {
  uint32_t on_bus = 0;                // NVIDIA GPUs on the PCI bus
  uint32_t found = 0;                 // GPUs that an executor would use
  bool is_selected = false;           // CUDA_VISIBLE_DEVICES selects them
  bool has_library = false;           // NVML, which comes with the driver
  std::string fault;                  // why NVML cannot be used
  std::string driver;                 // version; empty: not known
  uint32_t in_driver = 0;             // GPUs that NVML lets this process use
  std::vector<std::string> problems;  // "its GPU 2 is lost"
};

struct FileSystemFacts {
  std::filesystem::path path;  // of the folder
  std::string fault;           // why it cannot be used
  uint64_t bytes = 0;
  uint64_t free_bytes = 0;
  uint64_t needed_bytes = 0;  // an executor with less free space starts no trial
  uint64_t free_files = 0;
  uint64_t needed_files = 0;
};

struct PortFacts {
  int port = 0;
  bool is_taken = false;
  std::string fault;  // why it cannot be bound, if it is not taken
  // The process that listens. Empty and 0 if this user may not see it.
  std::string program;
  int64_t pid = 0;
};

struct PythonFacts {
  std::string path;     // empty: no python3 in PATH
  std::string version;  // 3.11.2; empty: it does not start
  bool has_attune = false;
  std::string attune_version;  // empty: not known, as in a folder of PYTHONPATH
};

struct HostFacts {
  std::string kernel;  // 6.1.0-13-amd64
  DescriptorFacts descriptors;
  MemoryFacts memory;
  CgroupFacts cgroups;
  FileSystemFacts shared_memory;
  GpuFacts gpus;
  PortFacts http_port;
  PortFacts rpc_port;
  std::optional<bool> clock_is_synchronised;  // nullopt: the kernel does not report it
  FileSystemFacts data_dir;
  FileSystemFacts temporary_dir;
  PythonFacts python;
};

struct ServerFacts {
  bool is_named = false;  // by --server or ATTUNE_SERVER
  std::string url;        // empty: no server is known
  std::string fault;      // why it does not answer
  std::string remedy;     // how to fix the fault
  std::string version;
  // The difference from the server's clock to this host's, and its possible error. nullopt: the
  // server did not report its time.
  std::optional<double> clock_ahead_seconds;
  double clock_error_seconds = 0;
};

}  // namespace attune::cli
