#pragma once

#include "base/result.h"
#include "core/base/random.h"
#include "core/space/search_space.h"

namespace attune {

// A value drawn from the domain: uniform over its values, or over their logarithms where its scale
// says so. REQUIRES: the domain has no fault.
Value Draw(const Domain& domain, RandomStream& stream);

// The configuration that has these values and, of whatever else exists beside them, drawn ones.
// kInvalid: as SearchSpace::Resolve, or a value is given of a parameter that exists only beside a
// value that is not.
Result<Config> Complete(const SearchSpace& space, const Config& given, RandomStream& stream);

}  // namespace attune
