#include "searchers/model/draw.h"

#include <algorithm>
#include <cmath>

#include "core/base/elementary.h"

namespace attune::searchers {

double StandardNormal(RandomStream& random) {  // Marsaglia's polar method, one of its two draws
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
