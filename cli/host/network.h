#pragma once

#include <string>

#include "base/result.h"

namespace attune::cli {

std::string HostName();

// The address as written before a port: an IPv6 address gets brackets.
std::string AddBrackets(const std::string& address);

// This host's address on the route to HOST:PORT. Sends nothing.
Result<std::string> AddressTowards(const std::string& target);

}  // namespace attune::cli
