#include "attune/distributed_sampler.h"

#include <torch/serialize/archive.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "attune/error.h"
#include "trainable/base/random.h"
#include "trainable/data/place.h"

namespace attune::inline sdk {
namespace {

// Fisher–Yates with a counter-based stream. std::shuffle and the standard distributions give
// different orders in different libraries.
void Shuffle(std::vector<std::int64_t>& items, std::uint64_t key) {
  for (std::uint64_t i = items.size(); i > 1; --i) {
    // The bias of the remainder is below items.size() / 2^64 and does not matter for an order.
    std::swap(items[i - 1], items[trainable::Key(key, i) % i]);
  }
}

// Draws samples with probabilities proportional to their weights.
void Draw(std::vector<std::int64_t>& items, const std::vector<double>& sums, std::uint64_t key) {
  constexpr int kUnusedBits = 64 - std::numeric_limits<double>::digits;
  for (std::uint64_t i = 0; i < items.size(); ++i) {
    const auto bits = static_cast<double>(trainable::Key(key, i) >> kUnusedBits);
    const double point = std::ldexp(bits, -std::numeric_limits<double>::digits) * sums.back();
    // A sample with weight 0 has the same sum as the one before it, so upper_bound never returns
    // it.
    auto drawn = std::upper_bound(sums.begin(), sums.end(), point);
    // The product may have been rounded up to the total.
    if (drawn == sums.end()) drawn = std::lower_bound(sums.begin(), sums.end(), sums.back());
    items[i] = drawn - sums.begin();
  }
}

}  // namespace

DistributedSampler::DistributedSampler(std::int64_t size, Options options)
    : size_(size), options_(std::move(options)) {
  if (size < 0) throw Error("sampler: the dataset's size is " + std::to_string(size));
  if (options_.world_size < 1 || options_.rank < 0 || options_.rank >= options_.world_size) {
    throw Error("sampler: there is no rank " + std::to_string(options_.rank) + " among " +
                std::to_string(options_.world_size));
  }
  if (!options_.weights.empty()) SumWeights();
}

void DistributedSampler::SumWeights() {
  const std::vector<double> weights = std::exchange(options_.weights, {});
  if (std::ssize(weights) != size_) {
    throw Error("sampler: weights: there are " + std::to_string(weights.size()) +
                " for a dataset of " + std::to_string(size_) + " samples; each sample needs one");
  }
  if (!options_.shuffle) {
    throw Error("sampler: weights: weighted samples are drawn at random; leave shuffle true");
  }
  auto sums = std::make_shared<std::vector<double>>();
  sums->reserve(weights.size());
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];
    if (!(weights[i] >= 0) || !std::isfinite(sum)) {
      throw Error("sampler: weights: the weight of sample " + std::to_string(i) + " is " +
                  std::to_string(weights[i]) + "; each must be at least 0, and their sum finite");
    }
    sums->push_back(sum);
  }
  if (sum == 0) throw Error("sampler: weights: all are 0, so no sample can be drawn");
  sums_ = std::move(sums);
}

const std::vector<std::int64_t>& DistributedSampler::Order(std::int64_t epoch) {
  if (epoch == order_epoch_) return order_;
  const std::uint64_t key = trainable::Key(options_.seed, static_cast<std::uint64_t>(epoch));
  order_.resize(size_);
  if (sums_ != nullptr) {
    Draw(order_, *sums_, key);
  } else {
    std::iota(order_.begin(), order_.end(), 0);
    if (options_.shuffle) Shuffle(order_, key);
  }
  order_epoch_ = epoch;
  return order_;
}

void DistributedSampler::MoveTo(std::int64_t epoch, std::int64_t offset) {
  if (epoch < 0 || offset < 0 || offset > size_) {
    throw Error("sampler: there is no position " + std::to_string(offset) + " of epoch " +
                std::to_string(epoch) + " in a dataset of " + std::to_string(size_) + " samples");
  }
  epoch_ = epoch;
  offset_ = offset;
  ended_ = false;
  begins_ = false;
}

void DistributedSampler::reset(std::optional<std::size_t> new_size) {
  if (new_size && static_cast<std::int64_t>(*new_size) != size_) {
    if (sums_ != nullptr) throw Error("sampler: weights: the dataset's size has changed");
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
  // A gang with smaller batches may have left fewer samples than one batch; they do not form a
  // separate epoch.
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
  // Samples that an ended epoch has left out stay left out in a gang with smaller batches.
  return {{trainable::kEpoch, trainable::NumberTensor(epoch_)},
          {trainable::kOffset, trainable::NumberTensor(ended_ ? size_ : offset_)},
          {trainable::kSize, trainable::NumberTensor(size_)},
          {trainable::kSeed, trainable::NumberTensor(static_cast<std::int64_t>(options_.seed))}};
}

void DistributedSampler::load_state_dict(const TensorMap& state) {
  if (const std::int64_t size = trainable::NumberIn(state, trainable::kSize); size != size_) {
    throw Error("sampler: the saved position is in a dataset of " + std::to_string(size) +
                " samples, this one has " + std::to_string(size_) +
                "; use the same data, or begin an epoch with set_epoch()");
  }
  MoveTo(trainable::NumberIn(state, trainable::kEpoch),
         trainable::NumberIn(state, trainable::kOffset));
  options_.seed = static_cast<std::uint64_t>(trainable::NumberIn(state, trainable::kSeed));
  order_epoch_ = -1;
}

void DistributedSampler::save(torch::serialize::OutputArchive& archive) const {
  for (const auto& [name, value] : state_dict()) archive.write(name, value, /*is_buffer=*/true);
}

void DistributedSampler::load(torch::serialize::InputArchive& archive) {
  TensorMap state;
  for (const char* name :
       {trainable::kEpoch, trainable::kOffset, trainable::kSize, trainable::kSeed}) {
    archive.read(name, state[name], /*is_buffer=*/true);
  }
  load_state_dict(state);
}

}  // namespace attune::inline sdk
