#pragma once

#include <chrono>
#include <cstddef>

namespace attune::server {

inline constexpr size_t kMaxBodyBytes = 1 << 20;  // of a request; more is 413
// With the framing of chunks, five bytes of each.
inline constexpr size_t kMaxChunkedBytes = 8 * kMaxBodyBytes;
inline constexpr size_t kMaxHeadBytes = 32 << 10;  // request line and headers; more is 431

// What clients may take of the server, in room and in time. Beyond a number they are refused with
// 503 and Retry-After; only what asks for the server's health still gets its answer.
struct HttpLimits {
  using Time = std::chrono::milliseconds;

  size_t connections = 2'000;
  size_t spare_connections = 64;        // beyond them: for health, and to be told 503
  int streams = 512;                    // of events
  int workers = 32;                     // requests that are answered at once
  size_t queued = 1'024;                // requests that wait for a worker
  size_t unread_body_bytes = 64 << 20;  // of all bodies that are being read

  Time idle{60'000};    // a connection between two requests
  Time head{10'000};    // from a request's first byte to the end of its head
  Time body{10'000};    // and to its end, beside the time that its bytes take
  Time taking{10'000};  // for an answer to be taken, beside the time that its bytes take
  Time later{20'000};   // for an answer that is put off (Response::later)
  size_t slowest_bytes_per_second = 64 << 10;  // a client that is slower is let go
};

inline constexpr size_t kOtherDescriptors = 256;  // of the process: the store, executors, logs
inline constexpr size_t kFewestConnections =
    16;  // that a server keeps, however few files it may open

// How many files a server with these limits opens at most.
constexpr size_t DescriptorsOf(const HttpLimits& limits) {
  return limits.connections + limits.spare_connections + kOtherDescriptors;
}

}  // namespace attune::server
