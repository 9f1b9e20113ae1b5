#pragma once

#include <string>

#include "base/result.h"

namespace attune::cli {

std::string HostName();

// An address as it stands before a port: one of IPv6 in brackets.
std::string Bracketed(const std::string& address);

// This host's address on the way to HOST:PORT. Nothing is sent.
Result<std::string> AddressTowards(const std::string& target);

}  // namespace attune::cli
