#pragma once

#include <cstddef>

namespace attune::server {

// How many connections the server keeps open. A connection belongs to the small pool of its port
// until a valid token has been seen on it.
struct ConnectionLimits {
  size_t http = 2'000;
  size_t http_unauthenticated = 256;
  size_t executors = 512;
  size_t executors_unauthenticated = 128;
};

// Descriptors for everything except connections: the store, logs, local executors.
inline constexpr size_t kOtherDescriptors = 256;

// The most descriptors that a process with these limits opens.
size_t DescriptorsOf(const ConnectionLimits& limits);

// The default limits, lowered to fit `descriptors`, but never below what a server needs to work.
ConnectionLimits LimitsWithin(size_t descriptors);

// Raises the process's limit of open files to the need of the default limits, as far as the system
// allows. Returns the limits that fit.
ConnectionLimits ReserveDescriptors();

}  // namespace attune::server
