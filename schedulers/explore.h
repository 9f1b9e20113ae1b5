#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "core/base/ids.h"
#include "core/space/search_space.h"

namespace attune::schedulers {

// How a configuration is changed by one that takes it over.
struct Exploration {
  double resample_probability = 0.25;
  double smaller = 0.8;  // a number is multiplied by one of these, each as likely
  double larger = 1.2;
  std::set<std::string> parameters = {};  // that are changed; empty: all

  bool Explores(const Parameter& parameter) const {
    return parameters.empty() || parameters.contains(parameter.name);
  }
  bool operator==(const Exploration&) const = default;
};

// The configuration with which a trial goes on from another's weights (Jaderberg et al.,
// "Population based training of neural networks", 2017, §3.1 and appendix A): each parameter is
// resampled with the probability, and perturbed otherwise. One that is not to be changed stays,
// such as what decides the shape of the weights.
//
// Perturbed, a number is multiplied by a factor and kept within its range; where it has steps, it
// goes to the nearest, and at least one step. A choice among numbers goes to the one before or
// after it in the list, any other choice stays. A parameter that exists only beside what others are
// now is drawn; one that no longer does is dropped. A value that an edit has put outside of the
// space comes to its edge, or is drawn.
//
// The draws are keyed by seed, trial, count and parameter. The result is valid in the space.
// REQUIRES: the space has no fault.
Config Explore(const SearchSpace& space, const Config& config, const Exploration& exploration,
               uint64_t seed, TrialNumber trial, int64_t count);

// What is other in `after`, for a sentence: "lr 0.1 → 0.12, dropout 0.5 → none"; or "nothing".
std::string Changes(const Config& before, const Config& after);

}  // namespace attune::schedulers
