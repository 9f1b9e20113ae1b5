#include "searchers/model/variation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/elementary.h"
#include "searchers/model/draw.h"

namespace attune::searchers {
namespace {

constexpr double kBeyond = 1e-9;  // distance past the end of a cell, into the next one

double Power(double base, double exponent) { return base > 0 ? Exp(exponent * Log(base)) : 0; }

}  // namespace

double Mutate(const Cube& cube, size_t dimension, double from, double index, RandomStream& random) {
  const Cube::Dimension& about = cube.dimensions()[dimension];
  const double u = random.Uniform();
  if (about.kind == Cube::Kind::kChoice) {
    if (about.count == 1) return from;
    const auto others = static_cast<double>(about.count - 1);
    const double place = std::min(std::floor(u * others), others - 1);
    return place < from ? place : place + 1;
  }
  const bool down = u < 0.5;
  const double distance = down ? from : 1 - from;  // to the end of the dimension
  const double tail = down ? 2 * u : 2 * (1 - u);  // 0: to the end
  const double beyond = Power(1 - distance, index + 1);
  const double part = 1 - Power(tail + (1 - tail) * beyond, 1 / (index + 1));
  const double to = std::clamp(down ? from - part : from + part, 0.0, 1.0);
  if (about.kind == Cube::Kind::kRange) return to;
  const auto [low, high] = cube.CellAround(dimension, from);
  if (to < low || to >= high) return cube.Snap(dimension, to);
  const bool goes_down = (down && low > 0) || high >= 1;  // the last cell has no upper neighbour
  return cube.Snap(dimension, goes_down ? low - kBeyond : high + kBeyond);
}

double CrossOver(const Cube& cube, size_t dimension, double one, double other, double index,
                 RandomStream& random) {
  const double u = random.Uniform();
  const double side = random.Uniform();
  if (cube.dimensions()[dimension].kind == Cube::Kind::kChoice) return side < 0.5 ? one : other;
  const auto [low, high] = std::minmax(one, other);
  const double distance = high - low;
  if (!(distance > 1e-12)) return one;
  const double nearest = std::min(low, 1 - high);
  const double alpha = 2 - Power(1 + 2 * nearest / distance, -(index + 1));
  const double spread = u <= 1 / alpha ? Power(u * alpha, 1 / (index + 1))
                                       : Power(1 / (2 - u * alpha), 1 / (index + 1));
  const double half = spread * distance / 2;
  const double middle = (low + high) / 2;
  return cube.Snap(dimension, std::clamp(side < 0.5 ? middle - half : middle + half, 0.0, 1.0));
}

}  // namespace attune::searchers
