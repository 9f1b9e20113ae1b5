#include "executor/record/host_description.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string_view>
#include <utility>

#include "executor/health/gpu_health.h"

namespace attune::agent {
namespace {

constexpr std::string_view kBlanks = " \t\"";

// The text behind the first separator of the first line that starts with `name`, without blanks and
// quotes around it.
std::string ValueInFile(const char* path, std::string_view name, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t at = line.find(separator);
    if (!line.starts_with(name) || at == line.npos) continue;
    const size_t start = line.find_first_not_of(kBlanks, at + 1);
    if (start == line.npos) return "";
    return line.substr(start, line.find_last_not_of(kBlanks) + 1 - start);
  }
  return "";
}

std::string LibcVersion() {
  std::array<char, 64> text{};
  confstr(_CS_GNU_LIBC_VERSION, text.data(), text.size());
  return text.data();
}

}  // namespace

HostDescription DescribeHost(bool has_gpus) {
  HostDescription host{.cpu = ValueInFile("/proc/cpuinfo", "model name", ':'),
                       .os = ValueInFile("/etc/os-release", "PRETTY_NAME", '='),
                       .libc = LibcVersion()};
  utsname kernel{};
  if (uname(&kernel) == 0) host.kernel = std::string(kernel.sysname) + " " + kernel.release;
  if (!has_gpus) return host;
  GpuDriver driver = ReadGpuDriver();
  host.gpu_driver = std::move(driver.version);
  host.gpu_models = std::move(driver.models);
  return host;
}

}  // namespace attune::agent
