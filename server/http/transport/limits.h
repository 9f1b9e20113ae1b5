#pragma once

#include <chrono>
#include <cstddef>

namespace attune::server {

inline constexpr size_t kMaxBodyBytes = 1 << 20;  // of a request; a longer body gets 413
// The limit for a chunked body with its framing, which takes five bytes per chunk or more.
inline constexpr size_t kMaxChunkedBytes = 8 * kMaxBodyBytes;
inline constexpr size_t kMaxHeadBytes = 32 << 10;  // request line and headers; more gets 431

// The limits for clients. A request beyond a limit on numbers is refused with 503 and Retry-After.
// Health checks are always answered.
struct HttpLimits {
  using Time = std::chrono::milliseconds;

  size_t connections = 2'000;           // connections on which a valid token was seen
  size_t unauthenticated = 256;         // other connections; a new one closes an older one
  int streams = 512;                    // open events streams
  int workers = 32;                     // requests that are handled at the same time
  size_t queued = 1'024;                // requests that wait for a worker
  int heavy_workers = 1;                // heavy requests at the same time (Response::heavy)
  size_t heavy_queued = 64;             // heavy requests that wait
  size_t unread_body_bytes = 64 << 20;  // of all bodies that are being read

  Time idle{60'000};       // between two requests of a connection
  Time head{10'000};       // from a request's first byte to the end of its head
  Time body{10'000};       // for its body, in addition to the transfer time of its bytes
  Time sending{10'000};    // for the client to take an answer, in addition to the transfer time
  Time postponed{20'000};  // for an answer that is postponed (Response::postponed)
  size_t slowest_bytes_per_second = 64 << 10;  // slower clients are disconnected
};

}  // namespace attune::server
