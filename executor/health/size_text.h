#pragma once

#include <cstdint>
#include <string>

namespace attune::agent {

// Formats a size for messages: 1.3 GiB, 120 MiB, 1.2 MiB.
std::string SizeText(uint64_t bytes);

}  // namespace attune::agent
