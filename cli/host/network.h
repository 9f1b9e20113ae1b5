#pragma once

#include <string>

#include "core/base/result.h"

namespace attune::cli {

std::string HostName();

// Where ranks of other hosts reach this one when a server listens on `host`: that address, or the
// host's name where it is every address.
std::string ReachableAddress(const std::string& host);

// This host's address on the way to HOST:PORT, which is the one that hosts over there reach it at.
// Nothing is sent.
Result<std::string> AddressTowards(const std::string& target);

}  // namespace attune::cli
