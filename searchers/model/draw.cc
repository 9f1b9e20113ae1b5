#include "searchers/model/draw.h"

#include <algorithm>
#include <cmath>

#include "core/base/elementary.h"

namespace attune::searchers {

// Marsaglia's polar method. It uses one of the method's two results.
double StandardNormal(RandomStream& random) {
  for (;;) {
    const double u = 2 * random.Uniform() - 1;
    const double v = 2 * random.Uniform() - 1;
    const double square = u * u + v * v;
    if (square > 0 && square < 1) return u * std::sqrt(-2 * Log(square) / square);
  }
}

double UniformPlace(double count, RandomStream& random) {
  return std::min(std::floor(random.Uniform() * count), count - 1);
}

}  // namespace attune::searchers
