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
  double log_improvement = 0;  // that is expected there: Acquisition::LogImprovement
};

// What earlier sweeps add to the logarithm of the improvement: `weight` times that of their
// density.
struct Belief {
  const Prior* prior = nullptr;  // null: nothing
  double weight = 0;
};

// Where the most improvement is expected, of the points that `wanted` says yes to: the best of some
// drawn in the box and some near `good` ones, after a climb by gradients over the numbers and by
// trying the other values of steps and lists. Nullopt when nothing drawn is wanted.
std::optional<ScoredPoint> MaximiseAcquisition(const Cube& cube, const Acquisition& acquisition,
                                       const Belief& belief, const Box& box,
                                       const std::vector<Point>& good,
                                       const std::function<bool(const Point&)>& wanted,
                                       RandomStream& random);

}  // namespace attune::searchers
