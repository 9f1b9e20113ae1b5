#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "core/base/ids.h"
#include "core/space/search_space.h"

namespace attune::schedulers {

// How a clone changes the configuration of its donor.
struct Exploration {
  double resample_probability = 0.25;
  double smaller = 0.8;  // a number is multiplied by one of these two, with equal probability
  double larger = 1.2;
  std::set<std::string> parameters = {};  // to change; empty: all

  bool MayChange(const Parameter& parameter) const {
    return parameters.empty() || parameters.contains(parameter.name);
  }
  bool operator==(const Exploration&) const = default;
};

// The configuration with which a trial continues from the weights of another (Jaderberg et al.,
// "Population based training of neural networks", 2017, §3.1 and appendix A). Each parameter in
// `parameters` is resampled with the given probability and perturbed otherwise. The others keep
// their values, for example those that decide the shape of the weights.
//
// A perturbed number is multiplied by a factor and kept within its range; with steps, it moves to
// the nearest one, at least one step away. A choice among numbers moves to a neighbour in the list;
// other choices stay. Parameters that become active are drawn, and inactive ones are dropped. A
// value that an edit has put outside of the space moves to its edge, or is drawn.
//
// The draws are keyed by seed, trial, count and parameter. The result is valid in the space.
// REQUIRES: the space has no fault.
Config Explore(const SearchSpace& space, const Config& config, const Exploration& exploration,
               uint64_t seed, TrialNumber trial, int64_t count);

// The differences, for a sentence: "lr 0.1 → 0.12, dropout 0.5 → none"; or "nothing".
std::string DescribeChanges(const Config& before, const Config& after);

}  // namespace attune::schedulers
