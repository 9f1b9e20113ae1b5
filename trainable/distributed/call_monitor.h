#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace c10d {
class Store;
}

namespace attune::inline sdk::trainable {

// Sees that all ranks have come to the same collective before it begins, as a collective by itself
// can only wait: torch.distributed's monitored_barrier, by the store, of every rank by every rank.
class CallMonitor {
 public:
  CallMonitor(c10::intrusive_ptr<c10d::Store> store, int rank, int world_size);

  // Waits until every rank has announced its next call. Throws attune::Error that begins with
  // `name` when some have not within the timeout, or when they announced another `call`.
  void Await(const std::string& name, const std::string& call, std::chrono::milliseconds timeout);

 private:
  std::string Key(std::int64_t number, int rank) const;
  std::string MissingRanks() const;  // "1, 3"
  void LetAllRead();

  const c10::intrusive_ptr<c10d::Store> gang_store_;
  c10::intrusive_ptr<c10d::Store> store_;  // once there was a call
  const int rank_;
  const int world_size_;
  std::int64_t calls_ = 0;
};

}  // namespace attune::inline sdk::trainable
