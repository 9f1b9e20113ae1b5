#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "system/unique_fd.h"
#include "trainable/base/sockets.h"

namespace attune::inline sdk::trainable {

// How rank 0 tells the others a few bytes after every step: along a binomial tree of sockets of its
// own, so that rank 0 writes to log2 of the ranks only, from the thread that trains, and waits for
// none of them as long as the kernel holds what they have not read yet. A collective costs several
// times as much: its threads have to be woken first.
//
// Whoever knows what the gang's store says may join the tree; others that come upon a rank's socket
// are sent away.
class Relay {
 public:
  // Blocks until the ranks next to this one in the tree are connected; every rank of the gang makes
  // one, over the same store. Sockets are Unix ones where `host` is empty, that is, for ranks of
  // one host, and else TCP ones on that IPv4 address. Throws attune::Error, c10::DistNetworkError
  // when the rank before this one is gone, or what the store throws.
  Relay(c10d::Store& store, int rank, int world_size, const std::string& host);

  // Rank 0's bytes to all: every rank calls it in the same order, with as many. Throws
  // c10::DistNetworkError when the rank before or behind this one is gone.
  void Tell(std::span<std::byte> bytes);

 private:
  UniqueFd from_;  // none on rank 0
  std::vector<UniqueFd> to_;
};

}  // namespace attune::inline sdk::trainable
