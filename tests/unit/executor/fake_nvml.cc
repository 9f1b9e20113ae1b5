// A fake of NVIDIA's management library. The variable FAKE_NVML has a word for each GPU, which is
// read at each call: ok, lost, silent, hidden, errors=3, failed, pending or retiring. Without the
// variable there is no driver.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int kSuccess = 0;
constexpr int kInvalid = 2;
constexpr int kNotSupported = 3;
constexpr int kNoPermission = 4;
constexpr int kNotFound = 6;
constexpr int kDriverNotLoaded = 9;
constexpr int kGpuIsLost = 15;
constexpr int kUnknown = 999;

std::vector<std::string> Words() {
  const char* text = std::getenv("FAKE_NVML");
  std::istringstream words(text ? text : "");
  return {std::istream_iterator<std::string>(words), {}};
}

// A device handle is the index of the GPU plus 1.
size_t IndexOf(void* device) { return reinterpret_cast<size_t>(device) - 1; }
std::string WordOf(void* device) { return Words().at(IndexOf(device)); }
bool IsLost(void* device) { return WordOf(device) == "lost"; }

}  // namespace

extern "C" {

int nvmlInit_v2() { return std::getenv("FAKE_NVML") ? kSuccess : kDriverNotLoaded; }
int nvmlShutdown() { return kSuccess; }
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::snprintf(text, size, "535.104.05");
  return kSuccess;
}
const char* nvmlErrorString(int code) {
  return code == kUnknown ? "Unknown Error" : "Driver Not Loaded";
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = Words().size();
  return kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= Words().size()) return kInvalid;
  *device = reinterpret_cast<void*>(size_t{index} + 1);
  return WordOf(*device) == "hidden" ? kNoPermission : kSuccess;
}

int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  std::snprintf(text, size, "GPU-%zu%zu%zu", IndexOf(device), IndexOf(device), IndexOf(device));
  return kSuccess;
}

int nvmlDeviceGetName(void* device, char* text, unsigned size) {
  std::snprintf(text, size, "NVIDIA Fake %zu", IndexOf(device));
  return kSuccess;
}

// The only MIG device is a part of the second GPU.
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  *device = nullptr;
  return std::strcmp(uuid, "MIG-a") == 0 ? kSuccess : kNotFound;
}
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void*, void** device) {
  *device = reinterpret_cast<void*>(size_t{2});
  return kSuccess;
}

int nvmlDeviceGetMemoryInfo(void* device, void*) {
  if (WordOf(device) == "silent") return kUnknown;
  return IsLost(device) ? kGpuIsLost : kSuccess;
}

int nvmlDeviceGetTotalEccErrors(void* device, int type, int counter, unsigned long long* errors) {
  if (type != 1 || counter != 0) return kInvalid;
  const std::string word = WordOf(device);
  if (word == "ok") return kNotSupported;
  *errors = word.starts_with("errors=") ? std::stoull(word.substr(7)) : 0;
  return kSuccess;
}

int nvmlDeviceGetRemappedRows(void* device, unsigned* corrected, unsigned* uncorrected,
                              unsigned* pending, unsigned* failed) {
  *corrected = *uncorrected = 0;
  *pending = WordOf(device) == "pending" ? 1 : 0;
  *failed = WordOf(device) == "failed" ? 1 : 0;
  return kSuccess;
}

int nvmlDeviceGetRetiredPagesPendingStatus(void* device, int* pending) {
  *pending = WordOf(device) == "retiring" ? 1 : 0;
  return kSuccess;
}

}  // extern "C"
