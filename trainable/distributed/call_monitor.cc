#include "trainable/distributed/call_monitor.h"

#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <utility>
#include <vector>

#include "attune/error.h"

namespace attune::inline sdk::trainable {
namespace {

// How long a rank that has found differing calls waits for the other ranks to find them too.
constexpr std::chrono::milliseconds kReadTimeout = std::chrono::seconds(5);

std::string DurationText(std::chrono::milliseconds duration) {
  return duration.count() % 1000 == 0 ? std::to_string(duration.count() / 1000) + " s"
                                      : std::to_string(duration.count()) + " ms";
}

}  // namespace

CallMonitor::CallMonitor(c10::intrusive_ptr<c10d::Store> store, int rank, int world_size)
    : gang_store_(std::move(store)), rank_(rank), world_size_(world_size) {}

std::string CallMonitor::Key(std::int64_t number, int rank) const {
  return std::to_string(number) + "/" + std::to_string(rank);
}

std::string CallMonitor::MissingRanks() const {
  std::string missing;
  for (int rank = 0; rank < world_size_; ++rank) {
    if (store_->check({Key(calls_, rank)})) continue;
    missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
  }
  return missing;
}

// Waits until all ranks have read the announced calls, because the store ends with rank 0.
void CallMonitor::AwaitReaders() {
  std::vector<std::string> keys;
  for (int rank = 0; rank < world_size_; ++rank) keys.push_back("read/" + Key(calls_, rank));
  try {
    store_->set(keys[rank_], std::vector<std::uint8_t>{1});
    store_->wait(keys, kReadTimeout);
  } catch (const c10::Error&) {
    // The missing rank has read the calls and left, or has failed for another reason.
  }
}

void CallMonitor::Await(const std::string& name, const std::string& call,
                        std::chrono::milliseconds timeout) {
  if (timeout.count() <= 0) {
    throw Error(name + ": timeout: " + std::to_string(timeout.count()) +
                " ms; it must be positive");
  }
  if (!store_) {
    // Uses a separate connection: while a rank waits on a connection, it cannot send another
    // request on it.
    store_ = c10::make_intrusive<c10d::PrefixStore>("calls", gang_store_->clone());
  }
  ++calls_;
  std::vector<std::string> keys;
  for (int rank = 0; rank < world_size_; ++rank) keys.push_back(Key(calls_, rank));
  store_->set(keys[rank_], std::vector<std::uint8_t>(call.begin(), call.end()));
  try {
    store_->wait(keys, timeout);
  } catch (const c10::DistStoreError&) {
    const std::string missing = MissingRanks();
    if (!missing.empty()) {
      throw Error(name + ": waited " + DurationText(timeout) + " for rank " + missing +
                  ", which has not called it; every rank must call the same collectives in the "
                  "same order");
    }
  }

  const auto announced = store_->multiGet(keys);
  std::string calls;
  bool differ = false;
  for (int rank = 0; rank < world_size_; ++rank) {
    const std::string their_call(announced[rank].begin(), announced[rank].end());
    differ |= their_call != call;
    calls += (rank == 0 ? "rank " : ", rank ") + std::to_string(rank) + " calls " + their_call;
  }
  if (differ) {
    AwaitReaders();
    throw Error(name + ": " + calls +
                "; every rank must call the same collectives in the same order, with tensors of "
                "the same type and shape");
  }
  // All ranks have reached this call, so nobody reads the entries of the previous one any more.
  if (calls_ > 1) store_->deleteKey(Key(calls_ - 1, rank_));
}

}  // namespace attune::inline sdk::trainable
