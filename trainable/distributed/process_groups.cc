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

// A rank may come late: on a busy host, loading libraries and data takes its time.
constexpr std::chrono::milliseconds kRendezvousTimeout = 10min;

// A collective of the training code that takes longer has lost a peer which did not close its
// connections (a host that vanished); a killed process is noticed at once, whatever this says.
constexpr std::chrono::milliseconds kDataTimeout = 30min;

// Ranks wait on the control group for as long as rank 0 waits for a verdict, which is as long as
// the server is away. The executor ends a gang that makes no progress; this must not do so first.
constexpr std::chrono::milliseconds kControlTimeout = 24h * 30;

constexpr const char* kLoopback = "127.0.0.1";
constexpr const char* kInterfaceVariable = "GLOO_SOCKET_IFNAME";

bool OnOneHost(const Start& start) { return start.local_world_size == start.world_size; }

std::optional<std::string> NamedInterface() {
  const char* name = std::getenv(kInterfaceVariable);
  if (name == nullptr || *name == '\0') return std::nullopt;
  return std::string(name);
}

// Of this host, where the gang's other ranks reach this one.
const std::string& AddressOf(const Start& start) {
  static const std::string loopback = kLoopback;
  if (OnOneHost(start)) return loopback;
  if (!start.address.empty()) return start.address;
  throw Error(
      "the gang is on several hosts, and the executor has not said at which address they "
      "reach each other; is it of another release than this program's SDK?");
}

// Rank 0 has `server` from then on.
c10::intrusive_ptr<c10d::Store> OpenStore(const Start& start, Channel& channel,
                                          std::unique_ptr<StoreServer>& server) {
  if (start.world_size == 1) return c10::make_intrusive<c10d::HashStore>();
  if (start.rank > 0) {
    const auto where = channel.Await<Rendezvous>("rendezvous");
    return c10::make_intrusive<GangStore>(StoreAddress(where.host, where.port), kRendezvousTimeout);
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
  // Every attempt has a store of its own; the prefix keeps the groups of this one apart.
  return c10::make_intrusive<c10d::ProcessGroupGloo>(
      c10::make_intrusive<c10d::PrefixStore>(prefix, store), start.rank, start.world_size, options);
}

}  // namespace

ProcessGroups::ProcessGroups(const Start& start, Channel& channel)
    : start_(start), store_(OpenStore(start, channel, server_)) {
  if (start.world_size == 1) return;
  control_ = MakeGloo(store_, "control", start, kControlTimeout);
  relay_.emplace(*store_, start.rank, start.world_size, OnOneHost(start) ? "" : AddressOf(start));
  MakeData();
  monitor_.emplace(store_, start.rank, start.world_size);
}

const c10::intrusive_ptr<c10d::ProcessGroup>& ProcessGroups::data() {
  if (!data_) MakeData();
  return data_;
}

void ProcessGroups::MakeData() {
  data_ = c10::make_intrusive<c10d::ProcessGroup>(store_, start_.rank, start_.world_size);
  using BackendType = c10d::ProcessGroup::BackendType;
#ifdef ATTUNE_CUDA
  const at::Device device(start_.device);
  if (device.is_cuda()) {
    // NCCL would look for a network card first.
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
  // NCCL's watchdog outlives a group that is merely destroyed.
  try {
    if (data_ && data_->getBackendType() == c10d::ProcessGroup::BackendType::NCCL) {
      data_->getBackend(c10::DeviceType::CUDA)->shutdown();
    }
  } catch (const std::exception&) {
    // The gang is being torn down; its failure has been reported where it happened.
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

bool ProcessGroups::HasWord(std::chrono::milliseconds timeout) const {
  return !relay_ || relay_->HasWord(timeout);
}

void ProcessGroups::Tell(std::span<std::int64_t> values) {
  if (relay_) relay_->Tell(std::as_writable_bytes(values));
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
    // What goes wrong while ranks connect to one another LibTorch rethrows as an error of no kind,
    // in gloo's words, which name its source.
    return std::string_view(other.what_without_backtrace()).find("gloo/transport/") !=
           std::string_view::npos;
  } catch (...) {
    return false;
  }
}

}  // namespace attune::inline sdk::trainable
