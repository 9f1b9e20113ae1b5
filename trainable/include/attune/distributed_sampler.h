#pragma once

#include <cstdint>
#include <vector>

namespace attune {

// Which samples of a dataset this rank visits, and in which order.
//
// The order of an epoch is a permutation keyed by (seed, epoch): the same on every rank, machine
// and standard library. Rank r takes places r, r + world_size, … of it, so a global batch of B
// samples is the same set whatever the number of ranks that share it. Every rank gets equally
// many: the last round is filled up with samples from the epoch's beginning, or dropped.
class DistributedSampler {
 public:
  struct Options {
    int rank = 0;
    int world_size = 1;
    std::uint64_t seed = 0;
    bool shuffle = true;     // false: the order of the dataset, every epoch
    bool drop_last = false;  // true: drop what does not fill the last round
  };

  // Throws attune::Error when rank or world_size make no sense, or size is negative.
  DistributedSampler(std::int64_t size, Options options);

  // Starts another epoch. Costs one shuffle.
  void set_epoch(std::int64_t epoch);
  std::int64_t epoch() const { return epoch_; }

  // Samples of this rank in an epoch; the same on every rank.
  std::int64_t size() const { return static_cast<std::int64_t>(indices_.size()); }

  // This rank's samples of the current epoch, in order.
  const std::vector<std::int64_t>& indices() const { return indices_; }

  // The next `count` samples of this rank when `start` of its samples have been visited since
  // epoch 0; goes on into the following epochs. What to visit is thus a function of the position
  // alone, so a resumed trial goes on where it was.
  std::vector<std::int64_t> Take(std::int64_t start, std::int64_t count);

 private:
  std::int64_t dataset_size_;
  Options options_;
  std::int64_t epoch_ = 0;
  std::vector<std::int64_t> indices_;
};

}  // namespace attune
