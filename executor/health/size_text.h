#pragma once

#include <cstdint>
#include <string>

namespace attune::agent {

// For people: 1.3 GiB, 120 MiB, 1.2 MiB.
std::string SizeText(uint64_t bytes);

}  // namespace attune::agent
