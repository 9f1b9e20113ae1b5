#include "executor/health/size_text.h"

#include <cstdio>

namespace attune::agent {

std::string SizeText(uint64_t bytes) {
  constexpr double kMebibyte = 1 << 20;
  const double mebibytes = static_cast<double>(bytes) / kMebibyte;
  char text[32];
  if (mebibytes >= 1023.5) {
    std::snprintf(text, sizeof text, "%.1f GiB", mebibytes / 1024);
  } else {
    std::snprintf(text, sizeof text, mebibytes >= 10 ? "%.0f MiB" : "%.1f MiB", mebibytes);
  }
  return text;
}

}  // namespace attune::agent
