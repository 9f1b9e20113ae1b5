#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "searchers/model/kernel.h"

namespace attune::searchers {

// A Parzen density of many points, which can be added and removed. Candidates should be where it is
// small.
//
// All kernels have the same widths, 0.1·n^(-1/(d+4)) (Scott's rule). Here n is the number of
// points, rounded down in steps of at most an eighth, so that adding one point seldom changes the
// others' kernels.
//
// A point takes 4 bytes per dimension and 5 more. Evaluating a density costs about four operations
// per kernel and coordinate, and a power of two per near kernel.
class WideParzen {
 public:
  explicit WideParzen(std::vector<Axis> axes);

  size_t size() const { return size_; }

  // Adds a point at the end, without a kernel. REQUIRES: one coordinate per axis.
  void Append(const Point& point);
  // Adds or removes the kernel of the point with this index.
  void SetIncluded(size_t index, bool included);

  double LogDensity(const Point& point) const;

  struct Difference {
    size_t index = 0;  // of the point
    double value = 0;
  };
  // The largest difference between a point's gain and the logarithm of its density. Among equals,
  // the first point wins. REQUIRES: at least one point, and one gain per point.
  Difference LargestDifference(const std::vector<Point>& points,
                               const std::vector<double>& gains) const;

 private:
  struct Kernels;

  Kernels Prepare() const;
  void UpdateWidths();
  float BiasAt(size_t index) const;

  std::vector<Axis> axes_;
  size_t size_ = 0;
  size_t included_ = 0;
  size_t width_count_ = 0;                   // the rounded number of points that set the widths
  std::vector<std::vector<float>> columns_;  // coordinates by axis, filled up to whole lanes
  std::vector<bool> is_included_;
  std::vector<float> biases_;   // binary logarithm of 1 over the kernel's mass inside the cube
  std::vector<double> widths_;  // by axis
  // By width: the bias of one axis as a natural logarithm, tabulated over the coordinate.
  std::map<double, std::vector<float>> bias_tables_;
};

}  // namespace attune::searchers
