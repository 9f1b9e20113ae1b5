#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "base/message_limits.h"

namespace attune::gang {

// Bytes that are searched at the end of each log. A matched line is cut to kMatchedLineBytesMax.
inline constexpr size_t kLogSearchedBytesMax = 4 << 20;

// A line that explains a failure.
struct LogMatch {
  std::string pattern;  // empty: no pattern matched
  std::string line;     // the first line that matches it
};

// Returns the first of `patterns` (RE2) that matches a line of the message or of the logs. The
// message and earlier logs are searched first. A missing log counts as empty.
LogMatch FindLogMatch(const std::vector<std::string>& patterns, const std::string& message,
                      const std::vector<std::filesystem::path>& logs);

}  // namespace attune::gang
