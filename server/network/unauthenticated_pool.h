#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace attune::server {

// The connections that have not shown a valid token yet. Because this pool is small, strangers
// cannot use up the server's connections.
//
// When the pool is full, a random connection of the older half is closed for a new one. A stranger
// who opens connections all the time therefore closes mostly their own. A client that has just
// connected has time to send its token. Not thread-safe.
class UnauthenticatedPool {
 public:
  // REQUIRES: capacity > 0.
  explicit UnauthenticatedPool(size_t capacity);

  // Adds the newest connection. If the pool was full, returns the connection to close, which is no
  // longer in the pool.
  std::optional<uint64_t> Add(uint64_t connection);

  // Removes a connection that has shown a token or has ended. Does nothing if it is absent.
  void Remove(uint64_t connection);

  size_t size() const { return by_age_.size(); }

 private:
  const size_t capacity_;
  std::vector<uint64_t> by_age_;  // oldest first
  std::minstd_rand random_;
};

}  // namespace attune::server
