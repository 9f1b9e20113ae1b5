#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "core/log/sweep_spec.h"

// Changes of a sweep that has begun. The row of a key says whether it may change
// (core/log/sweep_keys.h). The ranges and values of parameters, and the options of the searcher and
// the scheduler, may change as well.
namespace attune {

// The differences as text: "stop.max_trials 200", "parameters.lr.max 0.1". The error names the
// first key that cannot change. Initial points are not compared.
Result<std::vector<std::string>> Changes(const SweepSpec& from, const SweepSpec& to);

// The first `used` points, followed by those of the other points that lie in this space.
std::vector<Config> PointsInside(const std::vector<Config>& points, size_t used,
                                 const SearchSpace& space);

}  // namespace attune
