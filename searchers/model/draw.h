#pragma once

#include "core/base/random.h"

namespace attune::searchers {

// Draws from the standard normal distribution, with the same result on every machine. Takes two
// numbers from the stream, and two more each time that they are rejected.
double StandardNormal(RandomStream& random);

// Draws a uniform index below `count`, from one number of the stream. REQUIRES: count > 0.
double UniformPlace(double count, RandomStream& random);

}  // namespace attune::searchers
