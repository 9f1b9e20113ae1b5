#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "searchers/model/kernel.h"

namespace attune::searchers {

// A density of few points, ranked best first: what to draw from.
//
// Weights fall with the logarithm of the rank (those of recombination in CMA-ES: Hansen,
// arXiv:1604.00772, eq. 49) and add up to the number of points; the prior has `kPriorWeight`. In a
// dimension the kernel of a point is about as wide as the gap to its farther neighbour (Bergstra et
// al., NIPS 2011), so that points in a cluster are looked at closely.
//
// The `middle` is one kernel more: around the weighted mean of the points, as wide as their
// weighted deviation, in a list around the best one's value. It weighs so many times what all
// points do together.
class RankedParzen {
 public:
  static constexpr double kPriorWeight = 0.3;

  // REQUIRES: at least one point; each has a coordinate an axis.
  RankedParzen(std::vector<Axis> axes, std::vector<Point> best_first);

  // REQUIRES: middle >= 0.
  Point Draw(RandomStream& random, double middle = 0) const;
  double LogDensity(const Point& point, double middle = 0) const;

  // The derivatives of LogDensity, without the middle, by each axis; 0 by a list.
  std::vector<double> Slope(const Point& point) const;

 private:
  size_t size() const { return weights_.size(); }
  // Of the kernels at a point, the prior's first; with the middle last where it is wanted.
  std::vector<double> Logs(const Point& point, bool with_middle) const;
  void SetWidths(size_t axis);
  void SetMiddle(size_t axis);
  void SetKernel(size_t place, size_t axis, double width);

  std::vector<Axis> axes_;
  std::vector<double> weights_;
  double total_ = 0;  // weight, the prior's included, without the middle
  double prior_ = 0;  // its part of the density, as a logarithm
  // By axis and point, the middle being the last.
  std::vector<std::vector<double>> centres_;
  std::vector<std::vector<double>> widths_;
  std::vector<double> scales_;  // logarithm of a kernel's weight and height, lists left out
  std::vector<std::pair<double, double>> lists_;  // by axis: logarithms for its own value, another
};

}  // namespace attune::searchers
