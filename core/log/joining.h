#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "core/log/command.h"

namespace attune {

// Of one executor. What it says of itself stays in the log for good, and is counted together with
// what the others have.
inline constexpr size_t kExecutorNameBytesMax = 255;
inline constexpr size_t kExecutorTextBytesMax = 4096;  // its instance, address and folder, each
inline constexpr int kExecutorCpusMax = 1'000'000;
inline constexpr int kExecutorGpusMax = 1'000'000;
inline constexpr int64_t kExecutorMemoryMax = int64_t{1} << 50;  // 1 PiB

// kInvalid: it has no name or instance, or one of these or its labels is beyond what is allowed. A
// name is one that a file may have.
Status CheckJoin(const JoinExecutor& join);

}  // namespace attune
