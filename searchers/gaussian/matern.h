#pragma once

#include <cstddef>

namespace attune::searchers {

// The Matérn covariance with smoothness 5/2 and variance 1 (Rasmussen and Williams, "Gaussian
// Processes for Machine Learning", 2006, §4.2.1), of squared distances r²:
// (1 + √5·r + 5/3·r²)·exp(-√5·r).
//
// Replaces each r² in `values` by its covariance, and writes the derivative by r² to `slopes`
// unless it is null. The result is the same on every machine, bit for bit. REQUIRES: each r² >= 0.
void Matern52(double* values, double* slopes, size_t count);

}  // namespace attune::searchers
