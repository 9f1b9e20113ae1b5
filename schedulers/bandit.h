#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/ids.h"
#include "core/log/fields.h"
#include "core/space/search_space.h"
#include "schedulers/explore.h"

namespace attune::schedulers {

// The gain of a configuration between two decisions of a trial.
struct Gain {
  Config config;
  int64_t interval = 0;  // number of the interval, from 1
  double before = 0;     // the value at its start; larger is better
  double gain = 0;       // the rise of the value; finite
};

template <class A>
void Fields(A& archive, Like<A, Gain>& gain) {
  archive(gain.config, gain.interval, gain.before, gain.gain);
}

// A configuration with a high upper confidence bound.
struct Promise {
  Config config;
  double gain = 0;       // expected
  double deviation = 0;  // of the expectation
  size_t gains = 0;      // in the model
};

// Population-based bandits (Parker-Holder, Nguyen and Roberts, "Provably Efficient Online
// Hyperparameter Optimization with Population-Based Bandits", NeurIPS 2020): the numeric parameters
// of a clone are those where a Gaussian process of the gains so far has its largest upper
// confidence bound. Its covariance is a squared exponential of the parameters, each on its scale,
// and of the value before, times (1 - ε)^(Δ/2) for gains Δ intervals apart (Bogunovic, Scarlett and
// Cevher, AISTATS 2016), so that older gains count less.
//
// - The lengthscale, ε and the noise are chosen from short lists by likelihood. The result is the
//   best of kCandidates draws.
// - The configurations in training lower the deviation near them, which keeps simultaneous clones
//   apart.
// - Choices, conditions and parameters that `exploration` does not change are copied from `base`.
//   Only the newest kGainsMax gains are used.
//
// Nullopt with fewer than kGainsMin gains, if all gains are equal, or if no number changes. The
// draws are keyed by seed, trial and count. O(n^3 + candidates · n^2), some milliseconds. REQUIRES:
// `base` is valid in the space.
std::optional<Promise> MostPromising(const SearchSpace& space, const Config& base,
                                     const Exploration& exploration, const std::vector<Gain>& gains,
                                     const std::vector<Config>& training, int64_t interval,
                                     double before, uint64_t seed, TrialNumber trial,
                                     int64_t count);

inline constexpr size_t kGainsMin = 4;
inline constexpr size_t kGainsMax = 64;
inline constexpr int kCandidates = 256;

}  // namespace attune::schedulers
