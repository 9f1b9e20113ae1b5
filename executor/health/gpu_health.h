#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace attune::agent {

inline constexpr char kNvmlLibrary[] = "libnvidia-ml.so.1";

// State of the GPU driver, from NVIDIA's management library (NVML), which is part of the driver.
struct GpuDriver {
  bool has_library = false;         // true even if the library cannot be loaded
  std::string fault;                // why it cannot be used; empty: it can be used
  std::string version;              // of the driver, such as 535.104.05; empty: not known
  uint32_t gpus = 0;                // number of GPUs that this process may use
  std::vector<std::string> models;  // of these GPUs, such as NVIDIA H200
};

GpuDriver ReadGpuDriver(const std::string& library = kNvmlLibrary);

// Finds broken GPUs with NVIDIA's management library (NVML), so that gangs no longer get them.
// Opens the library at the first use. Without the library, GPUs have no problems.
//
// A GPU's problem stays until the process ends, because an administrator must decide about a GPU
// that was lost or whose memory failed. Not thread-safe. Calls block as long as the driver does.
class GpuHealth {
 public:
  // Consecutive checks without an answer until that is a problem; a busy driver may fail one check.
  static constexpr int kSilentChecks = 2;

  // Watches the first `gpus` GPUs of `given` (CUDA's names), or of all GPUs. `library` is for
  // tests.
  GpuHealth(uint32_t gpus, std::optional<std::vector<std::string>> given,
            std::string library = kNvmlLibrary);
  ~GpuHealth();
  GpuHealth(GpuHealth&&) noexcept;

  // Returns a clause for each GPU with a problem: "its GPU 2 is lost". The text of a problem never
  // changes.
  std::vector<std::string> Check();

 private:
  friend GpuDriver ReadGpuDriver(const std::string& library);
  class Nvml;
  struct Gpu;

  void Open();

  const uint32_t gpus_;
  const std::optional<std::vector<std::string>> given_;
  const std::string library_;
  bool is_open_ = false;  // Open() was called
  std::unique_ptr<Nvml> nvml_;
  std::vector<Gpu> watched_;
};

}  // namespace attune::agent
