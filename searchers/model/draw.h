#pragma once

#include "core/base/random.h"

namespace attune::searchers {

// A number of the standard normal distribution, the same on every machine. Takes two draws of the
// stream, and two more while the first are of no use.
double StandardNormal(RandomStream& random);

// A place among `count`, each as likely, of one draw. REQUIRES: count > 0.
double UniformPlace(double count, RandomStream& random);

}  // namespace attune::searchers
