#include "cli/watch/log_follower.h"

#include "base/result.h"

namespace attune::cli {

Status LogFollower::CopyRest() {
  while (true) {
    const Result<Api::LogSlice> slice = api_.Log(trial_, rank_, attempt_, offset_);
    if (!slice.ok()) return slice.error();
    output_.Write(slice->data);
    offset_ = slice->offset + static_cast<int64_t>(slice->data.size());
    if (offset_ >= slice->file_bytes || slice->data.empty()) return {};
  }
}

Status LogFollower::Copy(int64_t attempts) {
  if (newest_only_ && attempts > 0 && attempts != attempt_) {
    // The followed attempt has ended. Copies the end of its log before the next one.
    if (attempt_.has_value()) {
      if (Status copied = CopyRest(); !copied.ok()) return copied;
    }
    attempt_ = static_cast<int>(attempts);
    offset_ = 0;
  }
  return CopyRest();
}

}  // namespace attune::cli
