#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "executor/gang/facts.h"
#include "system/spawn.h"

namespace attune::gang {

// The first sign that a rank has failed by itself: its `error` line or its exit.
struct Symptom {
  int rank = 0;
  std::string error;               // text of its `error` line; empty: no such line
  bool lost_peer = false;          // the `error` line reports that another rank is gone
  bool disk_full = false;          // the `error` line reports a full disk or quota
  std::optional<ExitStatus> exit;  // empty: the gang was torn down before the rank exited by itself
  std::chrono::steady_clock::time_point seen_at{};
};

// Finds the symptom of the rank that caused the gang's failure. That is the first in `symptoms`,
// ordered by time, that has not lost a peer, or the first one if all have. A rank that lost a peer
// is a victim of the failure, not its cause. REQUIRES: !symptoms.empty().
const Symptom& FindCulprit(const std::vector<Symptom>& symptoms);

// Describes the failure of one rank. If it lost a peer and the rank `exited` has exited with status
// 0, the failure names that rank. The caller adds the tail of the log.
Failure DescribeFailure(const Symptom& symptom, std::optional<int> left = std::nullopt);

}  // namespace attune::gang
