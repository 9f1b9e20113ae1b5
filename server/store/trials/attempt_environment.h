#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "core/base/ids.h"
#include "server/store/rows.h"
#include "server/store/sqlite.h"

namespace attune::server {

// An executor records the environment of a sweep soon after an attempt has started there, and only
// if it has changed. A record from later than this is that of a later attempt.
inline constexpr std::chrono::minutes kRecordedWithin{2};

// With what an attempt ran; nullopt: the newest attempt. For each executor of its ranks, this is
// the newest record of the sweep until kRecordedWithin after the start of the attempt and not after
// its end, or else the first record after that. Executors without a record are missing. kNotFound:
// no such trial or attempt.
Result<AttemptEnvironment> ReadEnvironment(sqlite::Connection& connection, const TrialId& id,
                                           std::optional<uint32_t> attempt);

}  // namespace attune::server
