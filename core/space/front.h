#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/ids.h"
#include "core/space/objective.h"

namespace attune {

// Whether `a` is at least as good as `b` in every objective and better in one. With one objective:
// whether it is better.
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

// The best reports so far, in the order in which they were reported: those that no other dominates
// (the Pareto front). With one objective there is at most one. Of equal ones the first stays.
using Front = std::vector<Best>;

// More than so many are not kept: then the one with the nearest neighbours leaves, never one that
// is the best in an objective (crowding distance: Deb et al., "NSGA-II", 2002, §III-B).
// What only such a one dominated may join afterwards.
inline constexpr size_t kMaxFront = 100;

// What became of a report that was offered to a front.
struct Offered {
  bool joined = false;
  std::vector<Best> left;  // those that made room for it
};

// REQUIRES: as many values as objectives.
Offered Offer(const std::vector<Objective>& objectives, Best report, Front& front);

// The report of the front that is the best in the first objective; null when there is none.
const Best* First(const std::vector<Objective>& objectives, const Front& front);

}  // namespace attune
