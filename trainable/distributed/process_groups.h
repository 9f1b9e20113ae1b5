#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainable/channel/channel.h"
#include "trainable/channel/messages.h"
#include "trainable/distributed/call_monitor.h"
#include "trainable/distributed/relay.h"

namespace c10d {
class ProcessGroup;
class ProcessGroupGloo;
class Store;
}  // namespace c10d

namespace attune::inline sdk::trainable {

class StoreServer;

// The gang's two process groups. Training uses `data`: Gloo for CPU tensors, NCCL for CUDA ones.
// Reductions of metrics and barriers go over a Gloo group of their own, so that they
// never mix with collectives of the training code and work while a GPU is busy; what rank 0 tells
// the others after every step goes over a Relay.
//
// A gang of one rank has nobody to talk to: its control collectives do nothing, and `data` is made
// when it is first asked for, which most programs never do.
//
// Ranks on one host talk over loopback. Across hosts, over the address that the executor says
// (Start::address), or Gloo over the interface that GLOO_SOCKET_IFNAME names.
class ProcessGroups {
 public:
  // Blocks until every rank of the gang has joined. Throws attune::Error or c10::Error.
  ProcessGroups(const Start& start, Channel& channel);
  ~ProcessGroups();
  ProcessGroups(const ProcessGroups&) = delete;
  ProcessGroups& operator=(const ProcessGroups&) = delete;

  const c10::intrusive_ptr<c10d::ProcessGroup>& data();

  // Before a collective of the training code: see CallMonitor::Await. REQUIRES: more than one rank.
  void AwaitAll(const std::string& name, const std::string& call,
                std::chrono::milliseconds timeout) {
    monitor_->Await(name, call, timeout);
  }

  // Collectives of the control group; every rank calls them in the same order. A lost peer is an
  // exception.
  void Broadcast(std::span<std::int64_t> values);  // rank 0's values to all
  std::string Broadcast(const std::string& text);  // rank 0's text on each rank
  // As Broadcast, but that rank 0 does not wait until the others have its values (Relay).
  void Tell(std::span<std::int64_t> values);

  // Waits until every rank calls it; no rank calls Tell() after it.
  void Leave();

  // Whether Tell() has rank 0's word within this time.
  bool HasWord(std::chrono::milliseconds timeout) const;
  void Sum(std::span<double> values);
  std::vector<std::int64_t> Gather(std::int64_t value);  // of each rank, by rank
  void Barrier();

 private:
  void MakeData();

  const Start start_;
  std::unique_ptr<StoreServer> server_;  // rank 0's, in a gang of several
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::ProcessGroup> data_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> control_;  // null in a gang of one
  std::optional<Relay> relay_;                          // as control_, and this
  std::optional<CallMonitor> monitor_;
};

// Whether an exception tells of another rank that is gone, or does not answer, rather than of a
// cause of its own. It goes by the exception's type, gloo's and c10d's for their connections, or
// where it has none by the words.
bool IsLostPeer(const std::exception_ptr& error);

}  // namespace attune::inline sdk::trainable
