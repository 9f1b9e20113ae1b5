#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/space/value.h"

namespace attune {

constexpr size_t kMaxWarmStarts = 16;  // earlier sweeps that one may begin with
constexpr size_t kMostPrior = 1'000;   // results that it takes of all of them together

// A result of an earlier sweep, as a later one that begins with it sees it. Values of two sweeps
// need not be comparable (other data, other losses), so that only their order is kept.
struct PriorResult {
  TrialId from;
  Config config;    // one of the later sweep's space, when that was created
  double rank = 0;  // its place among all that were taken of its sweep, (place + ½) / count: from
                    // the best, above 0, to the worst, below 1
  bool operator==(const PriorResult&) const = default;
};

// What a sweep has taken of an earlier one when it was created.
struct WarmStart {
  SweepId from;
  int64_t results = 0;             // that the earlier one had then
  std::vector<PriorResult> taken;  // the best first
  std::string text;                // "43 of 50 results of s3; 7 outside of lr", for people
  bool operator==(const WarmStart&) const = default;
};

}  // namespace attune
