#pragma once

#include "core/base/random.h"
#include "searchers/model/cube.h"

namespace attune::searchers {

// Operators that make new coordinates from those of known points, for evolutionary searchers. The
// result is within the cube, and for steps in the middle of a cell.

// Polynomial mutation (Deb and Deb, "Analysing mutation schemes for real-parameter genetic
// algorithms", IJAISC 4, 2014): a coordinate near `from`, and nearer with a larger `index`. A step
// always changes to another one, and a listed value to any other with the same probability. A
// dimension with one value does not change.
double Mutate(const Cube& cube, size_t dimension, double from, double index, RandomStream& random);

// Simulated binary crossover (Deb and Agrawal, "Simulated binary crossover for continuous search
// space", Complex Systems 9, 1995): a coordinate near one of the two, and nearer with a larger
// `index`. The distribution is symmetric about their middle. For a list, one of the two values.
double CrossOver(const Cube& cube, size_t dimension, double one, double other, double index,
                 RandomStream& random);

}  // namespace attune::searchers
