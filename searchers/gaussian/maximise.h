#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/base/random.h"
#include "searchers/gaussian/acquisition.h"
#include "searchers/gaussian/trust_region.h"
#include "searchers/model/cube.h"
#include "searchers/model/prior.h"

namespace attune::searchers {

struct ScoredPoint {
  Point point;
  double log_improvement = 0;  // Acquisition::LogImprovement, plus the term of Belief
};

// Adds `weight` times the logarithm of the earlier sweeps' density to the logarithm of the
// improvement.
struct Belief {
  const Prior* prior = nullptr;  // null: no term
  double weight = 0;
};

// Searches for the point with the largest improvement, among the points for which `wanted` returns
// true. Draws points in the box and near the `good` points, and climbs from the best of them:
// numbers by gradients, steps and lists by trying other values. Nullopt if no drawn point is
// wanted.
std::optional<ScoredPoint> MaximiseAcquisition(const Cube& cube, const Acquisition& acquisition,
                                               const Belief& belief, const Box& box,
                                               const std::vector<Point>& good,
                                               const std::function<bool(const Point&)>& wanted,
                                               RandomStream& random);

}  // namespace attune::searchers
