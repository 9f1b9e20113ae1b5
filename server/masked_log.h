#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "server/folder/secret_mask.h"
#include "server/http/backend/backend.h"

namespace attune::server {

// A part of a log: at most `limit_bytes` from `offset` on. A negative offset counts from the end.
struct LogRange {
  int64_t offset = 0;
  uint32_t limit_bytes = 0;
};

using ReadLogRange = std::function<Result<Backend::LogSlice>(const LogRange& range)>;

// Reads a part of a log and masks secrets, including those that lie only partly in it. So nobody
// can read a secret in small parts. The slice may be shorter than the limit, even before the log's
// end.
Result<Backend::LogSlice> ReadMasked(const LogRange& wanted, const SecretMask& mask,
                                     const ReadLogRange& read);

}  // namespace attune::server
