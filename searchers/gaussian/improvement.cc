#include "searchers/gaussian/improvement.h"

#include "core/base/elementary.h"

namespace attune::searchers {

// With x = -u and Mills' ratio (1 - Φ(x))/φ(x) = 1/(x + K), K = 1/(x + 2/(x + 3/(x + …))), the
// expectation is φ(x)·K/(x + K), which has no cancellation.
LogImprovement LogExpectedImprovement(double u) {
  constexpr double kLogRoot2Pi = 0.91893853320467274178;
  constexpr double kTail = -3;
  constexpr int kTerms = 60;
  if (u > kTail) {
    const double cdf = NormalCdf(u);
    const double improvement = Exp(-u * u / 2 - kLogRoot2Pi) + u * cdf;
    return {Log(improvement), cdf / improvement};
  }
  const double x = -u;
  double fraction = 0;
  for (int term = kTerms; term > 0; --term) fraction = term / (x + fraction);
  return {-x * x / 2 - kLogRoot2Pi + Log(fraction / (x + fraction)), 1 / fraction};
}

}  // namespace attune::searchers
