#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "searchers/model/kernel.h"

namespace attune::searchers {

// A Parzen density of a few points, ranked best first. Candidates are drawn from it.
//
// Weights fall with the logarithm of the rank (those of recombination in CMA-ES: Hansen,
// arXiv:1604.00772, eq. 49) and add up to the number of points; the prior has `kPriorWeight`. In a
// dimension the kernel of a point is about as wide as the gap to its farther neighbour (Bergstra et
// al., NIPS 2011), so clusters are searched closely.
//
// The middle is an additional kernel at the weighted mean of the points, as wide as their weighted
// deviation. In a list its centre is the value of the best point. The argument `middle` is its
// weight, relative to the weight of all points together.
class RankedParzen {
 public:
  static constexpr double kPriorWeight = 0.3;

  // REQUIRES: at least one point; each has one coordinate per axis.
  RankedParzen(std::vector<Axis> axes, std::vector<Point> best_first);

  // REQUIRES: middle >= 0.
  Point Draw(RandomStream& random, double middle = 0) const;
  double LogDensity(const Point& point, double middle = 0) const;

  // The derivatives of LogDensity by each axis, without the middle; 0 for a list.
  std::vector<double> Slope(const Point& point) const;

 private:
  size_t size() const { return weights_.size(); }
  // The logarithms of the weighted kernels at a point: the prior first, the middle last.
  std::vector<double> LogKernels(const Point& point, bool with_middle) const;
  void SetWidths(size_t axis);
  void SetMiddle(size_t axis);
  void SetKernel(size_t place, size_t axis, double width);

  std::vector<Axis> axes_;
  std::vector<double> weights_;
  double total_ = 0;  // the weight of the points and the prior
  double prior_ = 0;  // the logarithm of the prior's part of the density
  // By axis and point; the middle is last.
  std::vector<std::vector<double>> centres_;
  std::vector<std::vector<double>> widths_;
  std::vector<double> scales_;  // by point: logarithm of weight times height, without lists
  // By axis, for lists: logarithms of the probabilities of the point's value and of another value.
  std::vector<std::pair<double, double>> lists_;
};

}  // namespace attune::searchers
