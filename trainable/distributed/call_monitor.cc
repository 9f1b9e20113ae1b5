#include "trainable/distributed/call_monitor.h"

#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <utility>
#include <vector>

#include "attune/error.h"

namespace attune::inline sdk::trainable {
namespace {

// How long a rank that knows of a fault stays for those that do not yet.
constexpr std::chrono::milliseconds kPatience = std::chrono::seconds(5);

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

// The store is gone with the rank that keeps it: nobody may leave before all know why.
void CallMonitor::LetAllRead() {
  std::vector<std::string> keys;
  for (int rank = 0; rank < world_size_; ++rank) keys.push_back("read/" + Key(calls_, rank));
  try {
    store_->set(keys[rank_], std::vector<std::uint8_t>{1});
    store_->wait(keys, kPatience);
  } catch (const c10::Error&) {
    // A rank that has left has read it, or is gone for a reason of its own.
  }
}

void CallMonitor::Await(const std::string& name, const std::string& call,
                        std::chrono::milliseconds timeout) {
  if (timeout.count() <= 0) {
    throw Error(name + ": timeout: " + std::to_string(timeout.count()) +
                " ms; it has to be positive");
  }
  if (!store_) {
    // A connection of its own: one on which a rank waits takes no other word of this rank.
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
                  ", which has not called it; every rank has to call the same collectives in the "
                  "same order");
    }
  }

  const auto announced = store_->multiGet(keys);
  std::string calls;
  bool differ = false;
  for (int rank = 0; rank < world_size_; ++rank) {
    const std::string theirs(announced[rank].begin(), announced[rank].end());
    differ |= theirs != call;
    calls += (rank == 0 ? "rank " : ", rank ") + std::to_string(rank) + " calls " + theirs;
  }
  if (differ) {
    LetAllRead();
    throw Error(name + ": " + calls +
                "; every rank has to call the same collectives in the same order, with tensors of "
                "the same type and shape");
  }
  // All have come to this call, so nobody reads the one before any more.
  if (calls_ > 1) store_->deleteKey(Key(calls_ - 1, rank_));
}

}  // namespace attune::inline sdk::trainable
