#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/ids.h"

namespace attune::schedulers {

// The steps at which trials are judged, the rungs: min, min·η, min·η², … below max, and max. η is
// the reduction factor.
//
// Trials of the first bracket start at the first rung, those of the second bracket at the second
// rung, and so on: later brackets suit metrics that mislead early. The seed and the number of a
// trial determine its bracket. The brackets have the same shares of the trials as in HyperBand (Li
// et al., JMLR 2018).
class Ladder {
 public:
  struct Options {
    Step min{1};
    Step max{0};
    int64_t reduction_factor = 4;
    int64_t brackets = 1;
    uint64_t seed = 0;

    int64_t RungsBelowMax() const;
  };

  // REQUIRES: 1 <= min < max, reduction_factor >= 2, 1 <= brackets <= RungsBelowMax().
  explicit Ladder(const Options& options);

  int64_t reduction_factor() const { return reduction_factor_; }
  const std::vector<Step>& steps() const { return steps_; }
  Step max() const { return steps_.back(); }
  size_t brackets() const { return shares_.size(); }

  // The bracket of a trial, from 0. It is also the index of the first rung of the trial.
  size_t BracketOf(TrialNumber trial) const;
  // The number of rungs at or before the step.
  size_t CountUpTo(Step step) const;

 private:
  int64_t reduction_factor_;
  uint64_t seed_;
  std::vector<Step> steps_;
  std::vector<double> shares_;  // of trials: the sum for each bracket and those before it
};

}  // namespace attune::schedulers
