#pragma once

#include <string>
#include <vector>

#include "core/log/event.h"

namespace attune::testing {

// Returns facts of every kind, with every enumerator, about trial s1/2.
std::vector<Fact> EveryFact();

// Serializes a fact. Facts that are equal bit for bit have equal bytes.
std::string Bytes(const Fact& fact);

}  // namespace attune::testing
