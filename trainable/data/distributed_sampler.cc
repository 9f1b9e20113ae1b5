#include "attune/distributed_sampler.h"

#include <algorithm>
#include <numeric>

#include "attune/error.h"
#include "trainable/base/random.h"

namespace attune {
namespace {

// Fisher–Yates over a counter-based stream: std::shuffle and the standard distributions give
// different orders in different libraries.
void Shuffle(std::vector<std::int64_t>& items, std::uint64_t key) {
  for (std::uint64_t i = items.size(); i > 1; --i) {
    // The remainder's bias, below items.size() / 2^64, does not matter for an order.
    std::swap(items[i - 1], items[trainable::Key(key, i) % i]);
  }
}

}  // namespace

DistributedSampler::DistributedSampler(std::int64_t size, Options options)
    : dataset_size_(size), options_(options) {
  if (size < 0) throw Error("sampler: the dataset's size is " + std::to_string(size));
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size) {
    throw Error("sampler: there is no rank " + std::to_string(options.rank) + " among " +
                std::to_string(options.world_size));
  }
  set_epoch(0);
}

void DistributedSampler::set_epoch(std::int64_t epoch) {
  epoch_ = epoch;
  std::vector<std::int64_t> order(dataset_size_);
  std::iota(order.begin(), order.end(), 0);
  if (options_.shuffle) {
    Shuffle(order, trainable::Key(options_.seed, static_cast<std::uint64_t>(epoch)));
  }

  const std::int64_t world = options_.world_size;
  const std::int64_t rounds =
      options_.drop_last ? dataset_size_ / world : (dataset_size_ + world - 1) / world;
  indices_.clear();
  indices_.reserve(rounds);
  for (std::int64_t round = 0; round < rounds; ++round) {
    indices_.push_back(order[(round * world + options_.rank) % dataset_size_]);
  }
}

std::vector<std::int64_t> DistributedSampler::Take(std::int64_t start, std::int64_t count) {
  if (size() == 0) throw Error("sampler: this rank's share of the dataset is empty");
  std::vector<std::int64_t> taken;
  taken.reserve(count);
  while (count > 0) {
    if (const std::int64_t wanted = start / size(); wanted != epoch_) set_epoch(wanted);
    const std::int64_t offset = start % size();
    const std::int64_t part = std::min(count, size() - offset);
    taken.insert(taken.end(), indices_.begin() + offset, indices_.begin() + offset + part);
    start += part;
    count -= part;
  }
  return taken;
}

}  // namespace attune
