#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/elementary.h"
#include "searchers/model/cube.h"

// The parts of Parzen densities over some dimensions of a Cube. A density is a mixture of a uniform
// prior and one kernel per point. A kernel is a product over the axes: for a number, a normal
// distribution that is truncated at the ends of the cube; for a list, most probability for the
// value of the point, and the rest spread over all values. For steps, coordinates are the middles
// of cells, and kernels are at least half a cell wide.
namespace attune::searchers {

struct Axis {
  Cube::Kind kind = Cube::Kind::kRange;
  int64_t count = 0;  // number of values; 0 for a range
};

inline constexpr double kRootOfTwoPi = 2.50662827463100050242;

inline double MinWidth(const Axis& axis) {
  return axis.count > 0 ? 0.5 / static_cast<double>(axis.count) : 0;
}

// The logarithm of the density of the uniform prior.
inline double LogUniform(const std::vector<Axis>& axes) {
  double sum = 0;
  for (const Axis& axis : axes) {
    if (axis.kind == Cube::Kind::kChoice) sum -= Log(static_cast<double>(axis.count));
  }
  return sum;
}

// The weight that a list's kernel spreads over all values, relative to that of the point's value.
inline double Spread(size_t points) { return 1 / (static_cast<double>(points) + 1); }

// The probabilities of a list's kernel, for the point's value and for each other value.
struct ListKernel {
  double same;
  double other;
};
inline ListKernel ListKernelOf(const Axis& axis, size_t points) {
  const double spread = Spread(points);
  const double each = spread / static_cast<double>(axis.count);
  return {(1 + each) / (1 + spread), each / (1 + spread)};
}

}  // namespace attune::searchers
