#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "system/unique_fd.h"
#include "trainable/base/sockets.h"

namespace attune::inline sdk::trainable {

// How rank 0 tells the others a few bytes after every step, along a binomial tree of sockets: rank
// 0 writes to log2 of the ranks only, from the thread that trains, and waits for none of them.
// Words that a rank does not read yet are queued. A collective costs several times as much: its
// threads have to be woken first.
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

  // Whether rank 0's next word is there, within this time; on rank 0 it is.
  bool HasWord(std::chrono::milliseconds timeout) const;

  // Rank 0's bytes to all: every rank calls it in the same order, with as many. Ranks that never
  // call it hold up nobody but those behind them in the tree. Throws c10::DistNetworkError when the
  // rank before or behind this one is gone.
  void Tell(std::span<std::byte> bytes);

  // Sends what is queued; waits until the ranks behind this one have taken it or called this as
  // well. Tell() is not called after it, and the words that still come are ignored.
  void Leave();

 private:
  // A rank behind this one, and what its socket has not taken yet.
  struct Listener {
    UniqueFd socket;
    std::vector<std::byte> unsent;
  };

  UniqueFd from_;  // none on rank 0
  std::vector<Listener> to_;
};

}  // namespace attune::inline sdk::trainable
