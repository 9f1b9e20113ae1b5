#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "executor/gang/facts.h"
#include "system/spawn.h"

namespace attune::gang {

// A first sign that a rank has failed by itself: its `error` line, or its end.
struct Symptom {
  int rank = 0;
  std::string error;               // text of its `error` line; empty if there was none
  bool lost_peer = false;          // its `error` line says that another rank is gone
  bool disk_full = false;          // its `error` line says that a disk or a quota is full
  std::optional<ExitStatus> exit;  // empty: the gang was torn down before it left by itself
  std::chrono::steady_clock::time_point seen_at{};
};

// The rank that caused a gang's failure, of `symptoms` in the order in which they were seen: the
// first that has not lost a peer, or the first if all have. A lost peer makes a rank a victim of
// the failure and not its cause. REQUIRES: !symptoms.empty().
const Symptom& Culprit(const std::vector<Symptom>& symptoms);

// Says what happened to one rank. If it has lost a peer and the rank `left` has exited with 0, that
// rank is named. The log's tail is left to the caller.
Failure Describe(const Symptom& symptom, std::optional<int> left = std::nullopt);

}  // namespace attune::gang
