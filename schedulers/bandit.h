#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/ids.h"
#include "core/log/fields.h"
#include "core/space/search_space.h"
#include "schedulers/explore.h"

namespace attune::schedulers {

// What training with a configuration brought from one decision of a trial to the next.
struct Gain {
  Config config;
  int64_t interval = 0;  // at whose end it was seen, from 1
  double before = 0;     // the value at its beginning; larger is better
  double gain = 0;       // by how much the value rose; finite
};

template <class A>
void Fields(A& archive, Like<A, Gain>& gain) {
  archive(gain.config, gain.interval, gain.before, gain.gain);
}

// A configuration that is expected to bring much, or of which little is known.
struct Promise {
  Config config;
  double gain = 0;       // that is expected of it
  double deviation = 0;  // of that
  size_t gains = 0;      // that the model was made of
};

// Population-based bandits (Parker-Holder, Nguyen and Roberts, "Provably Efficient Online
// Hyperparameter Optimization with Population-Based Bandits", NeurIPS 2020): the numeric parameters
// of a clone are those where a Gaussian process of the gains so far has its largest upper
// confidence bound. Its covariance is a squared exponential of the parameters, each on its scale,
// and of the value before, times (1 - ε)^(Δ/2) for gains Δ intervals apart (Bogunovic, Scarlett and
// Cevher, AISTATS 2016), so that what held early counts less and less.
//
// - One lengthscale, ε and the noise are those of a short list under which the gains are most
//   likely. What is sought is the best of kCandidates draws.
// - The configurations that others are training with now lower the deviation near them, so that
//   clones of one moment spread.
// - Choices, conditions and what `exploration` does not change are those of `base`. Only the newest
// kGainsMax gains are used.
//
// Nullopt where there are too few gains, no two of which differ, or no number is changed. The
// draws are keyed by seed, trial and count. O(n^3 + candidates · n^2), some milliseconds.
// REQUIRES: `base` is valid in the space.
std::optional<Promise> MostPromising(const SearchSpace& space, const Config& base,
                                     const Exploration& exploration, const std::vector<Gain>& gains,
                                     const std::vector<Config>& training, int64_t interval,
                                     double before, uint64_t seed, TrialNumber trial,
                                     int64_t count);

inline constexpr size_t kGainsMin = 4;
inline constexpr size_t kGainsMax = 64;
inline constexpr int kCandidates = 256;

}  // namespace attune::schedulers
