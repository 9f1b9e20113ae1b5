#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace attune::agent {

inline constexpr char kNvmlLibrary[] = "libnvidia-ml.so.1";

// What NVIDIA's management library (NVML), which comes with the driver, says of it.
struct GpuDriver {
  bool has_library = false;  // even one that cannot be loaded
  std::string fault;         // why it cannot be used; empty: it can
  std::string version;       // of the driver: 535.104.05; empty: not known
  uint32_t gpus = 0;         // that this process may use
};

GpuDriver ReadGpuDriver(const std::string& library = kNvmlLibrary);

// Which of the GPUs that gangs are given should be given no more, by NVIDIA's management library
// (NVML). It is opened when it is first needed: where there is none, nothing is said of GPUs.
//
// A GPU's problem stays until the process ends: what becomes of a GPU that was lost, or whose
// memory failed, is for people to decide. Used by one thread; its calls take as long as the driver
// does.
class GpuHealth {
 public:
  // Calls in a row that a GPU does not answer, before that is a problem: a driver that is busy may
  // fail one.
  static constexpr int kSilentLooks = 2;

  // The first `gpus` of `given`, in CUDA's names for them, or of all. `library` is for tests.
  GpuHealth(uint32_t gpus, std::optional<std::vector<std::string>> given,
            std::string library = kNvmlLibrary);
  ~GpuHealth();
  GpuHealth(GpuHealth&&) noexcept;

  // One sentence's end for each GPU that has a problem: "its GPU 2 is lost". The text of a problem
  // stays as it was when that was found.
  std::vector<std::string> Look();

 private:
  friend GpuDriver ReadGpuDriver(const std::string& library);
  class Nvml;
  struct Gpu;

  void Open();

  const uint32_t gpus_;
  const std::optional<std::vector<std::string>> given_;
  const std::string library_;
  bool is_open_ = false;  // or has been tried
  std::unique_ptr<Nvml> nvml_;
  std::vector<Gpu> watched_;
};

}  // namespace attune::agent
