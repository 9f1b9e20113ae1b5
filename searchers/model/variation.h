#pragma once

#include "core/base/random.h"
#include "searchers/model/cube.h"

namespace attune::searchers {

// How evolutionary searchers make a new point of one or two known ones. All of it keeps a
// coordinate within the cube, moves values in cells to other cells, and draws lists' values alike.

// A coordinate near `from`: polynomial mutation (Deb and Deb, "Analysing mutation schemes for
// real-parameter genetic algorithms", IJAISC 4, 2014), the nearer the larger `index`; of a list
// another value, each as likely. A dimension of one value keeps it.
double Mutate(const Cube& cube, size_t dimension, double from, double index, RandomStream& random);

// A coordinate between and around two, symmetric about their middle: simulated binary crossover
// (Deb and Agrawal, "Simulated binary crossover for continuous search space", Complex Systems 9,
// 1995), bounded by the cube, the nearer to one of them the larger `index`; of a list one of the
// two.
double CrossOver(const Cube& cube, size_t dimension, double one, double other, double index,
               RandomStream& random);

}  // namespace attune::searchers
