#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "searchers/model/cube.h"

// Densities on some dimensions of a Cube, as mixtures of a kernel around each of some points and a
// uniform prior. A kernel is a product: in a dimension with an order a normal distribution that is
// cut off at the cube's faces, in a list the point's own value with what is left spread over all.
// Values that come in cells are taken at the middles of their cells; kernels are no narrower than
// half a cell.
namespace attune::searchers {

struct Axis {
  Cube::Kind kind = Cube::Kind::kRange;
  int64_t count = 0;  // of values; 0 for a range
};

// Of few points, ranked best first: what to draw from.
//
// Weights fall with the logarithm of the rank (those of recombination in CMA-ES: Hansen,
// arXiv:1604.00772, eq. 49) and add up to the number of points; the prior has `kPriorWeight`. In a
// dimension the kernel of a point is about as wide as the gap to its farther neighbour (Bergstra et
// al., NIPS 2011), so that points in a cluster are looked at closely.
class RankedParzen {
 public:
  static constexpr double kPriorWeight = 0.3;

  // REQUIRES: at least one point; each has a coordinate an axis.
  RankedParzen(std::vector<Axis> axes, std::vector<Point> best_first);

  Point Draw(RandomStream& random) const;
  double LogDensity(const Point& point) const;

 private:
  void SetWidths(size_t axis);

  std::vector<Axis> axes_;
  std::vector<Point> centres_;
  std::vector<double> weights_;
  double total_ = 0;            // weight, the prior's included
  std::vector<Point> widths_;   // by centre and axis
  std::vector<double> scales_;  // logarithm of a kernel's weight and height, lists left out
  std::vector<std::pair<double, double>> lists_;  // by axis: logarithms for its own value, another
};

// Of many points, which come and go: what to stay away from. All kernels have the same widths,
// 0.1·n^(-1/(d+4)) (Scott's rule), where n follows the number of points in steps of an eighth at
// most, so that one point more or less usually touches no other kernel. A point costs 4 bytes a
// dimension and 5 more; a density costs a multiplication and, for each point that is asked about,
// two subtractions and a multiplication a coordinate, and one exponential a kernel that is near.
class WideParzen {
 public:
  explicit WideParzen(std::vector<Axis> axes);

  size_t size() const { return size_; }

  // One more point, the last one, without a kernel. REQUIRES: a coordinate an axis.
  void Append(const Point& point);
  // Gives the point its kernel, or takes it.
  void Include(size_t place, bool included);

  // For each of some points the logarithm of the density there.
  std::vector<double> LogDensities(const std::vector<Point>& points) const;

 private:
  void Refresh();  // widths, and what follows from them
  float BiasAt(size_t place) const;

  std::vector<Axis> axes_;
  size_t size_ = 0;
  size_t included_ = 0;
  size_t width_of_ = 0;                      // the number of points that the widths are for
  std::vector<std::vector<float>> columns_;  // by axis, with room to the next whole block
  std::vector<bool> is_in_;
  std::vector<float> biases_;   // logarithm of 1 over the kernel's mass inside the cube
  std::vector<double> widths_;  // by axis
  // By width: those biases in one axis, by the coordinate.
  std::map<double, std::vector<float>> lost_;
};

}  // namespace attune::searchers
