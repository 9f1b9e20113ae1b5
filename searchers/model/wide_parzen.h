#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "searchers/model/kernel.h"

namespace attune::searchers {

// A density of many points, which come and go: what to stay away from. All kernels have the same
// widths, 0.1·n^(-1/(d+4)) (Scott's rule), where n follows the number of points in steps of an
// eighth at most, so that one point more or less usually touches no other kernel. A point costs 4
// bytes a dimension and 5 more; a density costs a multiplication and, for each point that is asked
// about, two subtractions and a multiplication a coordinate, and a power of two a kernel that is
// near.
class WideParzen {
 public:
  explicit WideParzen(std::vector<Axis> axes);

  size_t size() const { return size_; }

  // One more point, the last one, without a kernel. REQUIRES: a coordinate an axis.
  void Append(const Point& point);
  // Gives the point its kernel, or takes it.
  void SetIncluded(size_t place, bool included);

  double LogDensity(const Point& point) const;

  struct Above {
    size_t place = 0;
    double difference = 0;
  };
  // Of some points the one whose gain is largest beside the logarithm of the density there, of
  // equal ones the first, and by how much. REQUIRES: at least one, and a gain each.
  Above LargestDifference(const std::vector<Point>& points, const std::vector<double>& gains) const;

 private:
  struct Kernels;

  Kernels Prepare() const;
  void Refresh();  // widths, and what follows from them
  float BiasAt(size_t place) const;

  std::vector<Axis> axes_;
  size_t size_ = 0;
  size_t included_ = 0;
  size_t width_of_ = 0;                      // the number of points that the widths are for
  std::vector<std::vector<float>> columns_;  // by axis, with room to the next whole block
  std::vector<bool> is_in_;
  std::vector<float> biases_;   // binary logarithm of 1 over the kernel's mass inside the cube
  std::vector<double> widths_;  // by axis
  // By width: those biases in one axis, as natural logarithms, by the coordinate.
  std::map<double, std::vector<float>> lost_;
};

}  // namespace attune::searchers
