#include "server/network/unauthenticated_pool.h"

#include "base/check.h"

namespace attune::server {

UnauthenticatedPool::UnauthenticatedPool(size_t capacity)
    : capacity_(capacity), random_(std::random_device{}()) {
  ATTUNE_CHECK(capacity > 0);
  by_age_.reserve(capacity);
}

std::optional<uint64_t> UnauthenticatedPool::Add(uint64_t connection) {
  std::optional<uint64_t> closed;
  if (by_age_.size() == capacity_) {
    const size_t older_half = (capacity_ + 1) / 2;
    const auto victim =
        by_age_.begin() + std::uniform_int_distribution<std::ptrdiff_t>(
                              0, static_cast<std::ptrdiff_t>(older_half) - 1)(random_);
    closed = *victim;
    by_age_.erase(victim);
  }
  by_age_.push_back(connection);
  return closed;
}

void UnauthenticatedPool::Remove(uint64_t connection) { std::erase(by_age_, connection); }

}  // namespace attune::server
