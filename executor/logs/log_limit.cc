#include "executor/logs/log_limit.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "system/system_error.h"
#include "system/unique_fd.h"

namespace attune::gang {
namespace {

// A multiple of the block sizes of file systems, which free only whole blocks.
constexpr uint64_t kGapGrain = uint64_t{64} << 10;

uint64_t RoundDownToGrain(uint64_t bytes) { return bytes / kGapGrain * kGapGrain; }

}  // namespace

LogLimit::LogLimit(std::filesystem::path log, uint64_t limit_bytes)
    : log_(std::move(log)),
      limit_bytes_(limit_bytes),
      gap_begin_(RoundDownToGrain(limit_bytes / 4)),
      gap_end_(gap_begin_),
      room_bytes_(limit_bytes) {}

Status LogLimit::Trim(uint64_t unread) {
  struct stat status {};
  if (stat(log_.c_str(), &status) != 0) return {};  // its sweep was deleted
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size < gap_end_) gap_end_ = gap_begin_;  // its program has truncated it
  const uint64_t kept = size - (gap_end_ - gap_begin_);
  room_bytes_ = limit_bytes_ - std::min(kept, limit_bytes_);
  if (room_bytes_ > 0) return {};

  const uint64_t end = RoundDownToGrain(std::min(size - limit_bytes_ / 2, unread));
  if (end <= gap_end_) return {};
  const UniqueFd file(open(log_.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file || fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                         static_cast<off_t>(gap_end_), static_cast<off_t>(end - gap_end_)) != 0)
    return SystemError("cannot free the middle of " + log_.string(), errno);
  gap_end_ = end;
  room_bytes_ = limit_bytes_ - std::min(size - (gap_end_ - gap_begin_), limit_bytes_);
  return {};
}

}  // namespace attune::gang
