#pragma once

#include <chrono>
#include <cstddef>

namespace attune::server {

inline constexpr size_t kMaxBodyBytes = 1 << 20;  // of a request; more is 413
// With the framing of chunks, five bytes of each.
inline constexpr size_t kMaxChunkedBytes = 8 * kMaxBodyBytes;
inline constexpr size_t kMaxHeadBytes = 32 << 10;  // request line and headers; more is 431

// How much of the server clients may use. A request beyond a number is refused with 503 and
// Retry-After. Requests for the server's health are always answered.
struct HttpLimits {
  using Time = std::chrono::milliseconds;

  size_t connections = 2'000;           // on which a valid token has been seen
  size_t unauthenticated = 256;         // other connections; a new one closes an older one
  int streams = 512;                    // of events
  int workers = 32;                     // requests that are answered at once
  size_t queued = 1'024;                // requests that wait for a worker
  int heavy_workers = 1;                // of these, heavy ones (Response::heavy)
  size_t heavy_queued = 64;             // heavy requests that wait for such a worker
  size_t unread_body_bytes = 64 << 20;  // of all bodies that are being read

  Time idle{60'000};    // a connection between two requests
  Time head{10'000};    // from a request's first byte to the end of its head
  Time body{10'000};    // and to its end, beside the time that its bytes take
  Time taking{10'000};  // for an answer to be taken, beside the time that its bytes take
  Time later{20'000};   // for an answer that is put off (Response::later)
  size_t slowest_bytes_per_second = 64 << 10;  // a client that is slower is let go
};

}  // namespace attune::server
