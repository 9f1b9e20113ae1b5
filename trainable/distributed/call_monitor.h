#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace c10d {
class Store;
}

namespace attune::inline sdk::trainable {

// Checks that all ranks have reached the same collective before it begins; a collective itself can
// only wait. It works like monitored_barrier of torch.distributed, but uses the store, and every
// rank checks every rank.
class CallMonitor {
 public:
  CallMonitor(c10::intrusive_ptr<c10d::Store> store, int rank, int world_size);

  // Waits until every rank has announced its next call. Throws attune::Error, with a message that
  // begins with `name`, if some ranks did not within the timeout, or announced a different `call`.
  void Await(const std::string& name, const std::string& call, std::chrono::milliseconds timeout);

 private:
  std::string Key(std::int64_t number, int rank) const;
  std::string MissingRanks() const;  // "1, 3"
  void AwaitReaders();

  const c10::intrusive_ptr<c10d::Store> gang_store_;
  c10::intrusive_ptr<c10d::Store> store_;  // created by the first call
  const int rank_;
  const int world_size_;
  std::int64_t calls_ = 0;
};

}  // namespace attune::inline sdk::trainable
