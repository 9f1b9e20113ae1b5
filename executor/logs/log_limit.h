#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>

#include "base/result.h"

namespace attune::gang {

inline constexpr uint64_t kLogLimit = uint64_t{64} << 20;    // of a rank's log; the default
inline constexpr uint64_t kLogLimitMin = uint64_t{1} << 20;  // smallest limit that users can choose
inline constexpr uint64_t kAllIsRead = std::numeric_limits<uint64_t>::max();

// Keeps the log of a rank within a limit of disk space while the rank appends to it. A quarter of
// the limit stays at the beginning of the log, and at least half at the end. The part between
// becomes a hole in the file. Offsets do not change, so readers can follow the log (ReadLog()).
class LogLimit {
 public:
  // REQUIRES: limit_bytes >= kLogLimitMin.
  LogLimit(std::filesystem::path log, uint64_t limit_bytes);

  // Makes the hole if the log has reached the limit. Keeps everything from the offset `unread` on.
  // Returns an error if the file system does not support holes.
  Status Trim(uint64_t unread = kAllIsRead);

  // Bytes that the log may still grow; 0: it is beyond its limit.
  uint64_t room_bytes() const { return room_bytes_; }

 private:
  const std::filesystem::path log_;
  const uint64_t limit_bytes_;
  const uint64_t gap_begin_;
  uint64_t gap_end_;
  uint64_t room_bytes_;
};

}  // namespace attune::gang
