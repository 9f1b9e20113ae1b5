#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/space/value.h"

namespace attune {

constexpr size_t kMaxWarmStarts = 16;  // earlier sweeps that a sweep may begin with
constexpr size_t kMostPrior = 1'000;   // results that it takes from all of them together

// A result of an earlier sweep, as the later sweep sees it. Values of two sweeps may not be
// comparable (other data, other losses), so only their order is kept.
struct PriorResult {
  TrialId from;
  Config config;  // valid in the later sweep's space when that was created
  // (place + ½) / count among the results taken from its sweep: near 0 for the best, near 1 for the
  // worst.
  double rank = 0;
  bool operator==(const PriorResult&) const = default;
};

// The results that a sweep took from an earlier sweep when it was created.
struct WarmStart {
  SweepId from;
  int64_t results = 0;             // how many the earlier sweep had
  std::vector<PriorResult> taken;  // the best first
  std::string text;                // "43 of 50 results of s3; 7 outside of lr", for people
  bool operator==(const WarmStart&) const = default;
};

}  // namespace attune
