#include "executor/health/gpu_health.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "logging/log.h"

namespace attune::agent {
namespace {

// From nvml.h; its values and layouts never change.
using Device = void*;
using Return = int;
constexpr Return kSuccess = 0;
constexpr Return kNoPermission = 4;
constexpr Return kNvmlTimeout = 10;
constexpr Return kGpuIsLost = 15;
constexpr Return kResetRequired = 16;
constexpr Return kUnknown = 999;
constexpr int kUncorrected = 1;    // nvmlMemoryErrorType_t
constexpr int kVolatile = 0;       // nvmlEccCounterType_t: counts since the driver was loaded
constexpr unsigned kUuidMax = 96;  // NVML_DEVICE_UUID_V2_BUFFER_SIZE
constexpr unsigned kNameMax = 96;  // NVML_DEVICE_NAME_V2_BUFFER_SIZE
constexpr unsigned kDriverVersionMax = 80;  // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE

struct MemoryInfo {
  unsigned long long total, free, used;
};

std::optional<size_t> IndexOf(const std::string& name) {
  size_t index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return index;
}

}  // namespace

struct GpuHealth::Gpu {
  std::string name;  // as CUDA names it
  Device device = nullptr;
  Return opened = kSuccess;
  std::optional<unsigned long long> errors;  // lowest count so far
  int silent = 0;                            // consecutive checks without an answer
  std::string problem;
};

// The open library.
class GpuHealth::Nvml {
 public:
  struct Opened {
    std::unique_ptr<Nvml> nvml;  // null: the library cannot be used
    bool has_library = false;    // true even if it cannot be loaded
    std::string fault;           // why it cannot be used
  };

  static Opened Open(const std::string& name) {
    std::unique_ptr<Nvml> nvml(new Nvml);
    nvml->library_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (nvml->library_ == nullptr) {
      const std::string fault = dlerror();
      const bool is_absent =
          fault.starts_with(name) && fault.ends_with("No such file or directory");
      return {.has_library = !is_absent, .fault = fault};
    }
    nvml->Load();
    if (!nvml->init_ || !nvml->count_ || !nvml->by_index_)
      return {.has_library = true, .fault = name + " is not NVML or is too old"};
    const Return begun = nvml->init_();
    nvml->is_begun_ = begun == kSuccess;
    if (!nvml->is_begun_)
      return {.has_library = true, .fault = "NVML cannot start: " + nvml->ErrorText(begun)};
    return {.nvml = std::move(nvml), .has_library = true};
  }

  std::string DriverVersion() const {
    std::array<char, kDriverVersionMax> text{};
    return version_ && version_(text.data(), text.size()) == kSuccess ? text.data() : "";
  }

  ~Nvml() {
    if (is_begun_ && shutdown_) shutdown_();
    if (library_ != nullptr) dlclose(library_);
  }

  // GPUs that this process may use, in NVML's order, which is the order on the PCI bus.
  std::vector<Gpu> UsableGpus() const {
    unsigned count = 0;
    if (count_(&count) != kSuccess) return {};
    std::vector<Gpu> usable;
    for (unsigned index = 0; index < count; ++index) {
      Gpu gpu;
      gpu.opened = by_index_(index, &gpu.device);
      if (gpu.opened != kNoPermission) usable.push_back(gpu);
    }
    return usable;
  }

  std::string Uuid(const Gpu& gpu) const {
    std::array<char, kUuidMax> text{};
    if (!uuid_ || gpu.opened != kSuccess) return "";
    return uuid_(gpu.device, text.data(), text.size()) == kSuccess ? text.data() : "";
  }

  std::string Model(const Gpu& gpu) const {
    std::array<char, kNameMax> text{};
    if (!name_ || gpu.opened != kSuccess) return "";
    return name_(gpu.device, text.data(), text.size()) == kSuccess ? text.data() : "";
  }

  // The GPU that contains this MIG device.
  std::optional<Gpu> ParentOfMig(const std::string& name) const {
    Device part = nullptr;
    Gpu gpu;
    if (!by_uuid_ || !of_mig_ || by_uuid_(name.c_str(), &part) != kSuccess ||
        of_mig_(part, &gpu.device) != kSuccess)
      return std::nullopt;
    return gpu;
  }

  std::string Problem(Gpu& gpu) const {
    if (gpu.opened != kSuccess) return ProblemFromReturn(gpu, gpu.opened);
    MemoryInfo ignored{};
    if (memory_) {
      const Return told = memory_(gpu.device, &ignored);
      if (std::string bad = ProblemFromReturn(gpu, told); !bad.empty()) return bad;
    }
    unsigned long long errors = 0;
    if (errors_ && errors_(gpu.device, kUncorrected, kVolatile, &errors) == kSuccess) {
      gpu.errors = std::min(gpu.errors.value_or(errors), errors);
      if (errors > *gpu.errors)
        return "has " + std::to_string(errors - *gpu.errors) +
               " uncorrectable memory errors since this executor started";
    }
    unsigned ignored_rows = 0;
    unsigned pending = 0;
    unsigned failed = 0;
    if (rows_ && rows_(gpu.device, &ignored_rows, &ignored_rows, &pending, &failed) == kSuccess) {
      if (failed != 0) return "has a bad memory row that could not be remapped";
      if (pending != 0) return "must be reset to remap a bad memory row";
    }
    int retires = 0;
    if (pages_ && pages_(gpu.device, &retires) == kSuccess && retires != 0)
      return "must be reset to retire a bad memory page";
    return "";
  }

 private:
  Nvml() = default;

  template <typename Function>
  void Find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(dlsym(library_, name));
  }

  void Load() {
    Find(init_, "nvmlInit_v2");
    Find(shutdown_, "nvmlShutdown");
    Find(words_, "nvmlErrorString");
    Find(version_, "nvmlSystemGetDriverVersion");
    Find(count_, "nvmlDeviceGetCount_v2");
    Find(by_index_, "nvmlDeviceGetHandleByIndex_v2");
    Find(by_uuid_, "nvmlDeviceGetHandleByUUID");
    Find(of_mig_, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle");
    Find(uuid_, "nvmlDeviceGetUUID");
    Find(name_, "nvmlDeviceGetName");
    Find(memory_, "nvmlDeviceGetMemoryInfo");
    Find(errors_, "nvmlDeviceGetTotalEccErrors");
    Find(rows_, "nvmlDeviceGetRemappedRows");
    Find(pages_, "nvmlDeviceGetRetiredPagesPendingStatus");
  }

  std::string ErrorText(Return code) const {
    return words_ ? words_(code) : "error " + std::to_string(code);
  }

  // The problem that the return value of a call shows; empty: none. Other values, such as "not
  // supported", show no problem.
  std::string ProblemFromReturn(Gpu& gpu, Return code) const {
    if (code == kGpuIsLost) return "is lost";
    if (code == kResetRequired) return "must be reset";
    gpu.silent = code == kNvmlTimeout || code == kUnknown ? gpu.silent + 1 : 0;
    return gpu.silent < kSilentChecks ? "" : "does not answer (NVML: " + ErrorText(code) + ")";
  }

  void* library_ = nullptr;
  bool is_begun_ = false;
  Return (*init_)() = nullptr;
  Return (*shutdown_)() = nullptr;
  const char* (*words_)(Return) = nullptr;
  Return (*version_)(char*, unsigned) = nullptr;
  Return (*count_)(unsigned*) = nullptr;
  Return (*by_index_)(unsigned, Device*) = nullptr;
  Return (*by_uuid_)(const char*, Device*) = nullptr;
  Return (*of_mig_)(Device, Device*) = nullptr;
  Return (*uuid_)(Device, char*, unsigned) = nullptr;
  Return (*name_)(Device, char*, unsigned) = nullptr;
  Return (*memory_)(Device, MemoryInfo*) = nullptr;
  Return (*errors_)(Device, int, int, unsigned long long*) = nullptr;
  Return (*rows_)(Device, unsigned*, unsigned*, unsigned*, unsigned*) = nullptr;
  Return (*pages_)(Device, int*) = nullptr;
};

GpuDriver ReadGpuDriver(const std::string& library) {
  const GpuHealth::Nvml::Opened opened = GpuHealth::Nvml::Open(library);
  GpuDriver driver{.has_library = opened.has_library, .fault = opened.fault};
  if (opened.nvml) {
    driver.version = opened.nvml->DriverVersion();
    const std::vector<GpuHealth::Gpu> usable = opened.nvml->UsableGpus();
    driver.gpus = static_cast<uint32_t>(usable.size());
    for (const GpuHealth::Gpu& gpu : usable) driver.models.push_back(opened.nvml->Model(gpu));
  }
  return driver;
}

GpuHealth::GpuHealth(uint32_t gpus, std::optional<std::vector<std::string>> given,
                     std::string library)
    : gpus_(gpus), given_(std::move(given)), library_(std::move(library)) {}

GpuHealth::~GpuHealth() = default;
GpuHealth::GpuHealth(GpuHealth&&) noexcept = default;

// GPUs whose names NVML does not know are not watched.
void GpuHealth::Open() {
  Nvml::Opened opened = Nvml::Open(library_);
  if (!opened.nvml) {
    logging::Log(opened.has_library ? logging::Level::kWarn : logging::Level::kInfo,
                 "GPUs are not watched: {}", opened.fault);
    return;
  }
  nvml_ = std::move(opened.nvml);
  const std::vector<Gpu> usable = nvml_->UsableGpus();
  for (uint32_t number = 0; number < gpus_; ++number) {
    const std::string name =
        given_ && number < given_->size() ? (*given_)[number] : std::to_string(number);
    std::optional<Gpu> found;
    if (const std::optional<size_t> index = IndexOf(name)) {
      if (*index < usable.size()) found = usable[*index];
    } else if (name.starts_with("MIG-")) {
      found = nvml_->ParentOfMig(name);
    } else {  // a UUID or its prefix
      const auto named = std::ranges::find_if(
          usable, [&](const Gpu& gpu) { return nvml_->Uuid(gpu).starts_with(name); });
      if (named != usable.end()) found = *named;
    }
    if (!found) {
      logging::Warn("GPU {} is not watched: NVML does not know it", name);
      continue;
    }
    found->name = name;
    watched_.push_back(*std::move(found));
  }
}

std::vector<std::string> GpuHealth::Check() {
  if (gpus_ > 0 && !std::exchange(is_open_, true)) Open();
  std::vector<std::string> problems;
  for (Gpu& gpu : watched_) {
    if (gpu.problem.empty()) gpu.problem = nvml_->Problem(gpu);
    if (!gpu.problem.empty()) problems.push_back("its GPU " + gpu.name + " " + gpu.problem);
  }
  return problems;
}

}  // namespace attune::agent
