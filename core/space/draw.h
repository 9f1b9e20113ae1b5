#pragma once

#include "core/base/random.h"
#include "core/space/search_space.h"

namespace attune {

// A value drawn from the domain: uniform over its values, or over their logarithms where its scale
// says so. REQUIRES: the domain has no fault.
Value Draw(const Domain& domain, RandomStream& stream);

}  // namespace attune
