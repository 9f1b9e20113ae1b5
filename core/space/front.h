#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/ids.h"
#include "core/space/objective.h"

namespace attune {

// Whether `a` is at least as good as `b` in every objective, and better in at least one.
bool Dominates(const std::vector<Objective>& objectives, const std::vector<double>& a,
               const std::vector<double>& b);

// One of the best reports of a sweep.
struct Best {
  TrialNumber trial;
  uint32_t attempt = 0;
  Step step;
  std::vector<double> values;  // of the objectives, in their order; all are finite
  bool operator==(const Best&) const = default;
};

// The Pareto front: the reports that no other report dominates, in the order in which they arrived.
// With one objective, it has at most one report. If two reports are equal, only the first one
// stays.
using Front = std::vector<Best>;

// The maximum size of a front. When it is exceeded, the report with the nearest neighbours is
// removed, but never the best report of an objective (crowding distance: Deb et al., "NSGA-II",
// 2002, §III-B). A report that only the removed one dominated may be added later.
inline constexpr size_t kMaxFront = 100;

// How a front changed when a report was added.
struct FrontChange {
  bool joined = false;     // whether the report is part of the front
  std::vector<Best> left;  // the reports that it replaced
};

// Adds the report to the front if it belongs there. REQUIRES: as many values as objectives.
FrontChange AddToFront(const std::vector<Objective>& objectives, Best report, Front& front);

// The report of the front that is the best in the first objective; null if the front is empty.
const Best* BestOfFront(const std::vector<Objective>& objectives, const Front& front);

}  // namespace attune
