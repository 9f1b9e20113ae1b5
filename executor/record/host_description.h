#pragma once

#include <string>
#include <vector>

namespace attune::agent {

// The host's parts that may change results. Empty: not known.
struct HostDescription {
  std::string cpu;                      // model
  std::string kernel;                   // such as Linux 6.1.0-18-amd64
  std::string os;                       // such as Debian GNU/Linux 12 (bookworm)
  std::string libc;                     // such as glibc 2.36
  std::string gpu_driver;               // version
  std::vector<std::string> gpu_models;  // of all GPUs that this process may use
};

// Reads GPUs only if `has_gpus`, because the driver may take seconds.
HostDescription DescribeHost(bool has_gpus);

}  // namespace attune::agent
