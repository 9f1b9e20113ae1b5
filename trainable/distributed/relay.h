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

// Sends a few bytes from rank 0 to all ranks after every step, along a binomial tree of sockets.
// Rank 0 writes to log2 of the ranks only, from the training thread, and waits for none of them.
// Messages that a rank has not read yet are queued. A collective costs several times as much,
// because its threads must be woken first.
//
// Only processes that can read the gang's store can join the tree; other connections are closed.
class Relay {
 public:
  // Blocks until the parent and the children of this rank in the tree are connected. Every rank of
  // the gang creates one, with the same store. If `host` is empty, the ranks are on one host and
  // use Unix sockets; otherwise they use TCP on that IPv4 address. Throws attune::Error,
  // c10::DistNetworkError if the parent is gone, and the exceptions of the store.
  Relay(c10d::Store& store, int rank, int world_size, const std::string& host);

  // Whether the next message of rank 0 arrives within this time; always true on rank 0.
  bool HasMessage(std::chrono::milliseconds timeout) const;

  // Sends rank 0's bytes to all ranks. Every rank calls it in the same order, with the same size. A
  // rank that never calls it delays only its descendants in the tree. Throws c10::DistNetworkError
  // if the parent or a child is gone.
  void Broadcast(std::span<std::byte> bytes);

  // Sends queued messages, and waits until the children have received them or called this too. Do
  // not call Broadcast() afterwards; messages that still arrive are ignored.
  void Leave();

 private:
  // A child in the tree, and the bytes that its socket has not accepted yet.
  struct Child {
    UniqueFd socket;
    std::vector<std::byte> unsent;
  };

  UniqueFd parent_;  // invalid on rank 0
  std::vector<Child> children_;
};

}  // namespace attune::inline sdk::trainable
