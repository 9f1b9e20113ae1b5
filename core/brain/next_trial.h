#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/brain/consequences.h"

// What a sweep runs next.
namespace attune {

// Whether the sweep may have one more attempt now.
bool MayStart(const Sweep& sweep);

// Whether the sweep may propose another trial.
bool MayCreate(const Sweep& sweep);

// The trial that waits for its next attempt: one that was requeued or enqueued and whose backoff
// is over, or one that the scheduler promotes. Null when there is none.
const Trial* NextWaiting(const Sweep& sweep, Time now);

inline bool HasNext(const Sweep& sweep, Time now) {
  return MayCreate(sweep) || NextWaiting(sweep, now) != nullptr;
}

// Gives the sweep's next trial an attempt on these ranks, or one without ranks to whoever asks with
// this key. A searcher that has no further configuration says so instead.
// REQUIRES: HasNext(sweep, now).
void StartNext(const State& state, const Sweep& sweep, std::vector<RankSlot> ranks,
               const std::string& idempotency_key, Time now, Facts& facts);

}  // namespace attune
