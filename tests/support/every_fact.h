#pragma once

#include <string>
#include <vector>

#include "core/log/event.h"

namespace attune::testing {

// Facts of every kind, with every enumerator, about trial s1/2.
std::vector<Fact> EveryFact();

// A fact's bytes: the same for facts that are the same, bit for bit.
std::string Bytes(const Fact& fact);

}  // namespace attune::testing
