#include "attune/distributed_sampler.h"

#include <torch/serialize/archive.h>
#include <torch/types.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "attune/error.h"
#include "trainable/base/random.h"

namespace attune::inline sdk {
namespace {

// Names in a saved state.
constexpr const char* kEpoch = "epoch";
constexpr const char* kOffset = "offset";
constexpr const char* kSize = "size";
constexpr const char* kSeed = "seed";

// Fisher–Yates over a counter-based stream: std::shuffle and the standard distributions give
// different orders in different libraries.
void Shuffle(std::vector<std::int64_t>& items, std::uint64_t key) {
  for (std::uint64_t i = items.size(); i > 1; --i) {
    // The remainder's bias, below items.size() / 2^64, does not matter for an order.
    std::swap(items[i - 1], items[trainable::Key(key, i) % i]);
  }
}

std::int64_t Number(const TensorMap& state, const char* name) {
  const auto found = state.find(name);
  if (found == state.end() || found->second.numel() != 1) {
    throw Error(std::string("sampler: the saved state has no number `") + name +
                "`; it is not that of a sampler or data loader");
  }
  return found->second.item<std::int64_t>();
}

}  // namespace

DistributedSampler::DistributedSampler(std::int64_t size, Options options)
    : size_(size), options_(options) {
  if (size < 0) throw Error("sampler: the dataset's size is " + std::to_string(size));
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size) {
    throw Error("sampler: there is no rank " + std::to_string(options.rank) + " among " +
                std::to_string(options.world_size));
  }
}

const std::vector<std::int64_t>& DistributedSampler::Order(std::int64_t epoch) {
  if (epoch == order_epoch_) return order_;
  order_.resize(size_);
  std::iota(order_.begin(), order_.end(), 0);
  if (options_.shuffle) {
    Shuffle(order_, trainable::Key(options_.seed, static_cast<std::uint64_t>(epoch)));
  }
  order_epoch_ = epoch;
  return order_;
}

void DistributedSampler::MoveTo(std::int64_t epoch, std::int64_t offset) {
  if (epoch < 0 || offset < 0 || offset > size_) {
    throw Error("sampler: there is no place " + std::to_string(offset) + " of epoch " +
                std::to_string(epoch) + " in a dataset of " + std::to_string(size_) + " samples");
  }
  epoch_ = epoch;
  offset_ = offset;
  ended_ = false;
  begins_ = false;
}

void DistributedSampler::reset(std::optional<std::size_t> new_size) {
  if (new_size && static_cast<std::int64_t>(*new_size) != size_) {
    size_ = static_cast<std::int64_t>(*new_size);
    order_epoch_ = -1;
    set_epoch(epoch_);
  } else if (ended_ || offset_ >= size_) {
    set_epoch(epoch_ + 1);
  }
  begins_ = true;
}

bool DistributedSampler::AtEnd(std::int64_t global_batch_size) const {
  return offset_ >= size_ || (options_.drop_last && size_ - offset_ < global_batch_size);
}

std::optional<std::vector<std::size_t>> DistributedSampler::next(std::size_t batch_size) {
  return NextShare(static_cast<std::int64_t>(batch_size) * options_.world_size);
}

std::optional<std::vector<std::size_t>> DistributedSampler::NextShare(
    std::int64_t global_batch_size) {
  const std::int64_t world = options_.world_size;
  if (global_batch_size < world) {
    throw Error("sampler: a batch of " + std::to_string(global_batch_size) +
                " samples cannot be shared by " + std::to_string(world) +
                " workers; every worker needs one");
  }
  // What a gang of smaller batches left of an epoch may not fill one: that is no epoch of its own.
  if (std::exchange(begins_, false) && offset_ > 0 && AtEnd(global_batch_size)) {
    set_epoch(epoch_ + 1);
  }
  ended_ = AtEnd(global_batch_size);
  if (ended_) return std::nullopt;
  const std::int64_t left = size_ - offset_;
  std::int64_t count = std::min(global_batch_size, left);
  if (!options_.drop_last && left - count < world) count = left;

  const std::vector<std::int64_t>& order = Order(epoch_);
  std::vector<std::size_t> share;
  share.reserve((count + world - 1) / world);
  for (std::int64_t place = options_.rank; place < count; place += world) {
    share.push_back(order[offset_ + place]);
  }
  if (share.empty()) share.push_back(order[offset_ + options_.rank % count]);
  offset_ += count;
  return share;
}

std::vector<std::int64_t> DistributedSampler::Take(std::int64_t position, std::int64_t count) {
  if (size_ == 0) throw Error("sampler: the dataset is empty");
  if (position < 0) throw Error("sampler: there is no position " + std::to_string(position));
  std::vector<std::int64_t> taken;
  taken.reserve(count);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t place = position + options_.rank + i * options_.world_size;
    taken.push_back(Order(place / size_)[place % size_]);
  }
  return taken;
}

TensorMap DistributedSampler::state_dict() const {
  const auto number = [](std::int64_t value) { return at::full({1}, value, at::kLong); };
  // What an epoch that has ended left out, a gang of smaller batches leaves out too.
  return {{kEpoch, number(epoch_)},
          {kOffset, number(ended_ ? size_ : offset_)},
          {kSize, number(size_)},
          {kSeed, number(static_cast<std::int64_t>(options_.seed))}};
}

void DistributedSampler::load_state_dict(const TensorMap& state) {
  if (const std::int64_t size = Number(state, kSize); size != size_) {
    throw Error("sampler: the saved place is in a dataset of " + std::to_string(size) +
                " samples, this one has " + std::to_string(size_) +
                "; go on with the same data, or begin an epoch with set_epoch()");
  }
  MoveTo(Number(state, kEpoch), Number(state, kOffset));
  options_.seed = static_cast<std::uint64_t>(Number(state, kSeed));
  order_epoch_ = -1;
}

void DistributedSampler::save(torch::serialize::OutputArchive& archive) const {
  for (const auto& [name, value] : state_dict()) archive.write(name, value, /*is_buffer=*/true);
}

void DistributedSampler::load(torch::serialize::InputArchive& archive) {
  TensorMap state;
  for (const char* name : {kEpoch, kOffset, kSize, kSeed}) {
    archive.read(name, state[name], /*is_buffer=*/true);
  }
  load_state_dict(state);
}

}  // namespace attune::inline sdk
