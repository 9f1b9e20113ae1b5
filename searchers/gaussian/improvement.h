#pragma once

namespace attune::searchers {

// The logarithm of E max(u - Z, 0) = φ(u) + u·Φ(u) for a standard normal Z, and its derivative by
// u. It is accurate even in the far tail, where the expectation is 0 in floating point (Ament et
// al., "Unexpected Improvements to Expected Improvement for Bayesian Optimization", NeurIPS 2023).
// Here the tail is computed by a continued fraction.
struct LogImprovement {
  double value = 0;
  double slope = 0;
};
LogImprovement LogExpectedImprovement(double u);

}  // namespace attune::searchers
