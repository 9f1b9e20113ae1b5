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

// The gang's two process groups. Training uses `data`: Gloo for CPU tensors, NCCL for CUDA tensors.
// Barriers and reductions of metrics use a separate Gloo group, so they never mix with collectives
// of the training code, and work while a GPU is busy. The message of rank 0 after every step goes
// over a Relay.
//
// In a gang of one rank, control collectives do nothing. Its `data` group is created on first use,
// which most programs never need.
//
// Ranks on one host communicate over loopback. Across hosts they use the address that the executor
// sends (Start::address). If GLOO_SOCKET_IFNAME is set, Gloo uses that interface.
class ProcessGroups {
 public:
  // Blocks until every rank of the gang has joined. Throws attune::Error or c10::Error.
  ProcessGroups(const Start& start, Channel& channel);
  ~ProcessGroups();
  ProcessGroups(const ProcessGroups&) = delete;
  ProcessGroups& operator=(const ProcessGroups&) = delete;

  const c10::intrusive_ptr<c10d::ProcessGroup>& data();

  // Call it before a collective of the training code; see CallMonitor::Await. REQUIRES: more than
  // one rank.
  void AwaitAll(const std::string& name, const std::string& call,
                std::chrono::milliseconds timeout) {
    monitor_->Await(name, call, timeout);
  }

  // Collectives of the control group. Every rank calls them in the same order. They throw if a peer
  // is lost.
  void Broadcast(std::span<std::int64_t> values);  // rank 0's values to all
  std::string Broadcast(const std::string& text);  // rank 0's text on each rank
  // Like Broadcast, but rank 0 does not wait until the others have its values (Relay).
  void BroadcastAsync(std::span<std::int64_t> values);

  // Waits until every rank has called it. No rank may call BroadcastAsync() afterwards.
  void Leave();

  // Whether a message of rank 0 for BroadcastAsync() arrives within this time.
  bool HasMessage(std::chrono::milliseconds timeout) const;
  void Sum(std::span<double> values);
  std::vector<std::int64_t> Gather(std::int64_t value);  // the values of all ranks, by rank
  void Barrier();

 private:
  void CreateDataGroup();

  const Start start_;
  std::unique_ptr<StoreServer> server_;  // only on rank 0 of several ranks
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::ProcessGroup> data_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> control_;  // null in a gang of one
  std::optional<Relay> relay_;                          // empty in a gang of one
  std::optional<CallMonitor> monitor_;                  // empty in a gang of one
};

// Whether an exception means that another rank is gone or does not answer, rather than a fault of
// this rank. It checks the exception's type (connection errors of gloo and c10d), or the text if
// the type is generic.
bool IsLostPeer(const std::exception_ptr& error);

}  // namespace attune::inline sdk::trainable
