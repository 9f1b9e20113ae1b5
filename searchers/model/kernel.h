#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/elementary.h"
#include "searchers/model/cube.h"

// What densities on some dimensions of a Cube are made of: mixtures of a kernel around each of some
// points and a uniform prior. A kernel is a product: in a dimension with an order a normal
// distribution that is cut off at the cube's faces, in a list the point's own value with what is
// left spread over all. Values that come in cells are taken at the middles of their cells; kernels
// are no narrower than half a cell.
namespace attune::searchers {

struct Axis {
  Cube::Kind kind = Cube::Kind::kRange;
  int64_t count = 0;  // of values; 0 for a range
};

inline constexpr double kRootOfTwoPi = 2.50662827463100050242;

inline double MinWidth(const Axis& axis) {
  return axis.count > 0 ? 0.5 / static_cast<double>(axis.count) : 0;
}

// The logarithm of a prior that is uniform in every axis.
inline double LogUniform(const std::vector<Axis>& axes) {
  double sum = 0;
  for (const Axis& axis : axes) {
    if (axis.kind == Cube::Kind::kChoice) sum -= Log(static_cast<double>(axis.count));
  }
  return sum;
}

// What is left for all values of a list beside the point's own: one point's worth among n.
inline double Spread(size_t points) { return 1 / (static_cast<double>(points) + 1); }

// Chances of a list's kernel: its own value, and another one.
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
