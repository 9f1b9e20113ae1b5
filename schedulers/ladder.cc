#include "schedulers/ladder.h"

#include <algorithm>

#include "base/check.h"
#include "core/base/random.h"

namespace attune::schedulers {

int64_t Ladder::Options::RungsBelowMax() const {
  int64_t rungs = 0;
  for (int64_t step = min.value; step < max.value; step *= reduction_factor) {
    ++rungs;
    if (step > max.value / reduction_factor) break;  // the product is beyond max
  }
  return rungs;
}

Ladder::Ladder(const Options& options)
    : reduction_factor_(options.reduction_factor), seed_(options.seed) {
  ATTUNE_CHECK(options.min >= Step(1) && options.min < options.max);
  ATTUNE_CHECK(options.reduction_factor >= 2);
  const int64_t rungs = options.RungsBelowMax();
  ATTUNE_CHECK(options.brackets >= 1 && options.brackets <= rungs);
  Step step = options.min;
  for (int64_t rung = 0; rung < rungs; ++rung) {
    steps_.push_back(step);
    if (rung + 1 < rungs) step.value *= reduction_factor_;
  }
  steps_.push_back(options.max);
  double sum = 0;
  for (int64_t bracket = 0; bracket < options.brackets; ++bracket) {
    double trials = 1;  // trials that start for each trial that completes
    for (int64_t rung = bracket; rung < rungs; ++rung)
      trials *= static_cast<double>(reduction_factor_);
    shares_.push_back(sum += trials / static_cast<double>(rungs - bracket + 1));
  }
}

size_t Ladder::BracketOf(TrialNumber trial) const {
  if (brackets() == 1) return 0;
  const double drawn = RandomStream(seed_, trial, "asha/bracket").Uniform() * shares_.back();
  const auto bracket = std::ranges::upper_bound(shares_, drawn) - shares_.begin();
  return std::min(static_cast<size_t>(bracket), brackets() - 1);
}

size_t Ladder::CountUpTo(Step step) const {
  return static_cast<size_t>(std::ranges::upper_bound(steps_, step) - steps_.begin());
}

}  // namespace attune::schedulers
