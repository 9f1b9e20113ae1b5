#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/doctor/facts.h"

namespace attune::cli {

inline constexpr uint64_t kWorkerDescriptors = 1'024;  // soft limit, which workers inherit
inline constexpr uint64_t kSharedMemoryBytesMin = uint64_t{1} << 30;
inline constexpr uint64_t kDataBytesWarning = uint64_t{10} << 30;
inline constexpr uint64_t kTemporaryBytesWarning = uint64_t{1} << 30;
inline constexpr double kClockSkewSecondsMax = 2;

struct Release {
  int major = 0;
  int minor = 0;
};
inline constexpr Release kKernelMin{5, 4};
inline constexpr Release kPythonMin{3, 9};

enum class Health {
  kOk,
  kWarning,  // Attune works, but something is slow, absent or may fail under load
  kMissing,  // something does not work
};

std::string_view ToText(Health health);  // ok, warning, missing

struct Finding {
  std::string name;  // of the check; scripts depend on it
  Health health = Health::kOk;
  std::string detail;
  std::string remedy;  // empty if and only if `health` is kOk
};

// One finding for each check, always in the same order.
std::vector<Finding> Examine(const HostFacts& host, const ServerFacts& server);

}  // namespace attune::cli
