#include "trainable/distributed/process_groups.h"

#include <c10/util/Exception.h>
#include <gloo/common/error.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#ifdef ATTUNE_CUDA
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

#include "attune/error.h"
#include "trainable/base/sockets.h"
#include "trainable/distributed/gang_store.h"
#include "trainable/distributed/store_server.h"

namespace attune::inline sdk::trainable {
namespace {

using std::chrono_literals::operator""min;
using std::chrono_literals::operator""h;

// A rank may join late: on a busy host, loading libraries and data takes time.
constexpr std::chrono::milliseconds kRendezvousTimeout = 10min;

// If a collective of the training code takes longer, a peer has vanished without closing its
// connections, for example with its host. A killed process is noticed at once, independent of this
// timeout.
constexpr std::chrono::milliseconds kDataTimeout = 30min;

// Ranks wait on the control group while rank 0 waits for a verdict, which lasts as long as the
// server is unreachable. The executor ends a gang that makes no progress; this timeout must not end
// it earlier.
constexpr std::chrono::milliseconds kControlTimeout = 24h * 30;

constexpr const char* kLoopback = "127.0.0.1";
constexpr const char* kInterfaceVariable = "GLOO_SOCKET_IFNAME";

bool OnOneHost(const Start& start) { return start.local_world_size == start.world_size; }

std::optional<std::string> NamedInterface() {
  const char* name = std::getenv(kInterfaceVariable);
  if (name == nullptr || *name == '\0') return std::nullopt;
  return std::string(name);
}

// The address of this host at which the other ranks of the gang reach this one.
const std::string& AddressOf(const Start& start) {
  static const std::string loopback = kLoopback;
  if (OnOneHost(start)) return loopback;
  if (!start.address.empty()) return start.address;
  throw Error(
      "the gang has several hosts, but the executor sent no address for them; use an executor of "
      "the same release as this program's SDK");
}

// On rank 0, sets `server`.
c10::intrusive_ptr<c10d::Store> OpenStore(const Start& start, Channel& channel,
                                          std::unique_ptr<StoreServer>& server) {
  if (start.world_size == 1) return c10::make_intrusive<c10d::HashStore>();
  if (start.rank > 0) {
    const auto rendezvous = channel.Await<Rendezvous>("rendezvous");
    return c10::make_intrusive<GangStore>(StoreAddress(rendezvous.host, rendezvous.port),
                                          kRendezvousTimeout);
  }
  const std::string& address = AddressOf(start);
  server = std::make_unique<StoreServer>(address);
  channel.Send(ToLine(Rendezvous{address, server->port()}));
  return c10::make_intrusive<GangStore>(StoreAddress(address, server->port()), kRendezvousTimeout);
}

c10::intrusive_ptr<c10d::ProcessGroupGloo> MakeGloo(const c10::intrusive_ptr<c10d::Store>& store,
                                                    const char* prefix, const Start& start,
                                                    std::chrono::milliseconds timeout) {
  auto options = c10d::ProcessGroupGloo::Options::create(timeout);
  options->threads = 1;
  const auto interface = NamedInterface();
  options->devices.push_back(
      OnOneHost(start) || !interface ? c10d::ProcessGroupGloo::createDeviceForHostname(
                                           AddressOf(start))
                                     : c10d::ProcessGroupGloo::createDeviceForInterface(
                                           *interface));
  // Every attempt has a separate store; the prefix separates the groups of this attempt.
  return c10::make_intrusive<c10d::ProcessGroupGloo>(
      c10::make_intrusive<c10d::PrefixStore>(prefix, store), start.rank, start.world_size, options);
}

}  // namespace

ProcessGroups::ProcessGroups(const Start& start, Channel& channel)
    : start_(start), store_(OpenStore(start, channel, server_)) {
  if (start.world_size == 1) return;
  control_ = MakeGloo(store_, "control", start, kControlTimeout);
  relay_.emplace(*store_, start.rank, start.world_size, OnOneHost(start) ? "" : AddressOf(start));
  CreateDataGroup();
  monitor_.emplace(store_, start.rank, start.world_size);
}

const c10::intrusive_ptr<c10d::ProcessGroup>& ProcessGroups::data() {
  if (!data_) CreateDataGroup();
  return data_;
}

void ProcessGroups::CreateDataGroup() {
  data_ = c10::make_intrusive<c10d::ProcessGroup>(store_, start_.rank, start_.world_size);
  using BackendType = c10d::ProcessGroup::BackendType;
#ifdef ATTUNE_CUDA
  const at::Device device(start_.device);
  if (device.is_cuda()) {
    // Otherwise NCCL would prefer a network card to loopback.
    if (OnOneHost(start_)) setenv("NCCL_SOCKET_IFNAME", "lo", /*overwrite=*/0);
    data_->setBoundDeviceId(device);
    auto options = c10d::ProcessGroupNCCL::Options::create();
    options->timeout = kDataTimeout;
    data_->setBackend(c10::DeviceType::CUDA, BackendType::NCCL,
                      c10::make_intrusive<c10d::ProcessGroupNCCL>(
                          c10::make_intrusive<c10d::PrefixStore>("nccl", store_), start_.rank,
                          start_.world_size, options));
  }
#endif
  data_->setBackend(c10::DeviceType::CPU, BackendType::GLOO,
                    MakeGloo(store_, "data", start_, kDataTimeout));
  data_->setDefaultBackend(start_.device == "cpu" ? BackendType::GLOO : BackendType::NCCL);
  data_->setGroupName("attune");
}

ProcessGroups::~ProcessGroups() {
#ifdef ATTUNE_CUDA
  // Destroying the group does not stop NCCL's watchdog.
  try {
    if (data_ && data_->getBackendType() == c10d::ProcessGroup::BackendType::NCCL) {
      data_->getBackend(c10::DeviceType::CUDA)->shutdown();
    }
  } catch (const std::exception&) {
    // The gang is shutting down; its failure was reported where it happened.
  }
#endif
}

void ProcessGroups::Broadcast(std::span<std::int64_t> values) {
  if (!control_) return;
  std::vector<at::Tensor> tensors{
      at::from_blob(values.data(), {std::ssize(values)}, at::TensorOptions(at::kLong))};
  control_->broadcast(tensors)->wait();
}

void ProcessGroups::Leave() {
  if (relay_) relay_->Leave();
  Barrier();
}

bool ProcessGroups::HasMessage(std::chrono::milliseconds timeout) const {
  return !relay_ || relay_->HasMessage(timeout);
}

void ProcessGroups::BroadcastAsync(std::span<std::int64_t> values) {
  if (relay_) relay_->Broadcast(std::as_writable_bytes(values));
}

std::string ProcessGroups::Broadcast(const std::string& text) {
  if (!control_) return text;
  auto bytes = static_cast<std::int64_t>(text.size());
  Broadcast({&bytes, 1});
  if (bytes == 0) return "";
  std::string shared = text;
  shared.resize(bytes);
  std::vector<at::Tensor> tensors{
      at::from_blob(shared.data(), {bytes}, at::TensorOptions(at::kByte))};
  control_->broadcast(tensors)->wait();
  return shared;
}

void ProcessGroups::Sum(std::span<double> values) {
  if (!control_) return;
  std::vector<at::Tensor> tensors{
      at::from_blob(values.data(), {std::ssize(values)}, at::TensorOptions(at::kDouble))};
  control_->allreduce(tensors)->wait();
}

std::vector<std::int64_t> ProcessGroups::Gather(std::int64_t value) {
  if (!control_) return {value};
  std::vector<std::int64_t> values(start_.world_size);
  std::vector<at::Tensor> inputs{at::full({1}, value, at::TensorOptions(at::kLong))};
  std::vector<std::vector<at::Tensor>> outputs(1);
  for (std::int64_t& slot : values) {
    outputs[0].push_back(at::from_blob(&slot, {1}, at::TensorOptions(at::kLong)));
  }
  control_->allgather(outputs, inputs)->wait();
  return values;
}

void ProcessGroups::Barrier() {
  if (control_) control_->barrier()->wait();
}

bool IsLostPeer(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const gloo::IoException&) {
    return true;
  } catch (const c10::DistNetworkError&) {
    return true;
  } catch (const c10::DistStoreError&) {
    return true;
  } catch (const c10::DistBackendError&) {
    return true;
  } catch (const c10::Error& other) {
    // LibTorch rethrows errors during connection as a generic c10::Error. The text comes from gloo
    // and contains its source file.
    return std::string_view(other.what_without_backtrace()).find("gloo/transport/") !=
           std::string_view::npos;
  } catch (...) {
    return false;
  }
}

}  // namespace attune::inline sdk::trainable
