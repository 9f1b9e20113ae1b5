#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "core/log/sweep_spec.h"

// Changes of a sweep that has begun. The row of a key says whether it may change
// (core/log/sweep_keys.h). The ranges and values of parameters, and the options of the searcher and
// the scheduler, may change as well.
namespace attune {

// What differs, for people: "stop.max_trials 200", "parameters.lr.max 0.1". The error names the
// first key that cannot change. The initial points are not compared.
Result<std::vector<std::string>> Changes(const SweepSpec& from, const SweepSpec& to);

// Of the points from `used` on, those that lie in this space, after the ones before.
std::vector<Config> PointsInside(const std::vector<Config>& points, size_t used,
                                 const SearchSpace& space);

}  // namespace attune
