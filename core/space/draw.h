#pragma once

#include "base/result.h"
#include "core/base/random.h"
#include "core/space/search_space.h"

namespace attune {

// Draws a value from the domain, uniformly, or log-uniformly if the domain has a log scale.
// REQUIRES: the domain has no fault.
Value Draw(const Domain& domain, RandomStream& stream);

// The configuration with the given values, and with random values for the other active parameters.
// Returns kInvalid like SearchSpace::Resolve, or if a parameter is given without the parameter that
// its condition names.
Result<Config> Complete(const SearchSpace& space, const Config& given, RandomStream& stream);

}  // namespace attune
