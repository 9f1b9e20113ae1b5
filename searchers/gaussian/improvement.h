#pragma once

namespace attune::searchers {

// The logarithm of the improvement that a standard normal number is expected to bring below u,
// E max(u - Z, 0) = φ(u) + u·Φ(u), and its derivative by u: exact in the far tail too, where the
// improvement itself is 0 in floating point (Ament et al., "Unexpected Improvements to Expected
// Improvement for Bayesian Optimization", NeurIPS 2023; by a continued fraction here).
struct LogImprovement {
  double value = 0;
  double slope = 0;
};
LogImprovement LogExpectedImprovement(double u);

}  // namespace attune::searchers
