#include "searchers/gaussian/trust_region.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/elementary.h"

namespace attune::searchers {
namespace {

constexpr double kFirstSide = 0.8;
constexpr double kLongest = 1.6;
constexpr double kShortest = 1.0 / 128;
constexpr size_t kSuccesses = 3;     // successive improvements that double the side
constexpr size_t kFailures = 4;      // minimum of losses that halve the side
constexpr double kLeastGain = 1e-3;  // minimum improvement, as a share of the best loss

}  // namespace

double TrustRegionSide(const std::vector<double>& losses, size_t dimensions) {
  double side = kFirstSide;
  double best = std::numeric_limits<double>::infinity();
  size_t successes = 0;
  size_t failures = 0;
  for (const double loss : losses) {
    const bool better = loss < best - (std::isfinite(best) ? kLeastGain * std::abs(best) : 0);
    best = std::min(best, loss);
    successes = better ? successes + 1 : 0;
    failures = better ? 0 : failures + 1;
    if (successes == kSuccesses) {
      side = std::min(2 * side, kLongest);
      successes = 0;
    } else if (failures == std::max(kFailures, dimensions)) {
      side /= 2;
      failures = 0;
      if (side < kShortest) side = kFirstSide;
    }
  }
  return side;
}

Box TrustRegion(const Point& centre, const std::vector<double>& lengthscales, double side) {
  double mean = 0;
  for (const double lengthscale : lengthscales) mean += Log(lengthscale);
  mean = Exp(mean / static_cast<double>(lengthscales.size()));
  Box box{Point(centre.size(), 0.0), Point(centre.size(), 1.0)};
  for (size_t k = 0; k < centre.size(); ++k) {
    if (std::isnan(centre[k])) continue;
    const double half = side / 2 * lengthscales[k] / mean;
    box.low[k] = std::clamp(centre[k] - half, 0.0, 1.0);
    box.high[k] = std::clamp(centre[k] + half, 0.0, 1.0);
  }
  return box;
}

}  // namespace attune::searchers
