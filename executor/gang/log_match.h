#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "base/message_limits.h"

namespace attune::gang {

// So much is looked through of the end of each log; of a line, kMatchedLineBytesMax are told.
inline constexpr size_t kLogSearchedBytesMax = 4 << 20;

// What explains a failure.
struct LogMatch {
  std::string pattern;  // empty: none is found
  std::string line;     // the first in which it is
};

// The first of the patterns (RE2) that is found in a line of the message or of the logs, of which
// the earlier ones come first. Reads the logs; one that is not there has no lines.
LogMatch Find(const std::vector<std::string>& patterns, const std::string& message,
              const std::vector<std::filesystem::path>& logs);

}  // namespace attune::gang
