#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "core/log/command.h"

namespace attune {

// Limits of the description that an executor sends when it joins. The log keeps the description,
// and the resources of all executors are added up.
inline constexpr size_t kExecutorNameBytesMax = 255;
inline constexpr size_t kExecutorTextBytesMax = 4096;  // instance, address and folder, each
inline constexpr int kExecutorCpusMax = 1'000'000;
inline constexpr int kExecutorGpusMax = 1'000'000;
inline constexpr int64_t kExecutorMemoryMax = int64_t{1} << 50;  // 1 PiB

// Returns kInvalid if the name or the instance is empty, or if something exceeds the limits above
// or those of labels. The name must also be valid as the name of a file.
Status CheckJoin(const JoinExecutor& join);

}  // namespace attune
