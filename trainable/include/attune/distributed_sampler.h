#pragma once

#include <torch/data/samplers/base.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "attune/checkpoint.h"

namespace attune::inline sdk {

// Options of DistributedSampler and Context::PrepareSampler().
struct DistributedSamplerOptions {
  // PrepareSampler() fills these in.
  int rank = 0;
  int world_size = 1;
  std::uint64_t seed = 0;

  bool shuffle = true;     // false: every epoch uses the order of the dataset
  bool drop_last = false;  // true: leave out an incomplete last batch of an epoch

  // Optional weights, one for each sample, finite and at least 0. An epoch then has as many draws
  // as the dataset has samples. Each draw picks a sample with a probability proportional to its
  // weight, with replacement. Needs `shuffle`.
  std::vector<double> weights;
};

// A torch::data sampler that determines which samples of a dataset this rank visits, and in which
// order.
//
// The order of an epoch is a permutation, or with weights a series of draws. It depends only on
// (seed, epoch), and is the same on every rank, machine and standard library. The gang visits its
// places in order. Its position is epoch × dataset size + place.
//
// Rank r takes places r, r + world_size, … of each global batch, so the content of a batch does not
// depend on the number of ranks. A trial that resumes with a different number of ranks visits
// exactly the remaining samples.
//
// Every rank gets the same number of batches, without padding. The shares of one batch may differ
// by one sample. If fewer places than ranks remain in an epoch, they join its last batch. Samples
// are repeated only if a gang resumes with fewer samples left than it has ranks.
class DistributedSampler final : public torch::data::samplers::Sampler<> {
 public:
  // The options of the constructor.
  using Options = DistributedSamplerOptions;

  // Throws attune::Error if rank, world_size or weights are invalid, or size is negative.
  DistributedSampler(std::int64_t size, Options options);

  // Returns this rank's share of the gang's next batch_size × world_size samples; nullopt at the
  // end of the epoch.
  std::optional<std::vector<std::size_t>> next(std::size_t batch_size) override;

  // Like next(), for a global batch that need not be a multiple of the number of ranks. Throws
  // attune::Error if it is smaller than the number of ranks.
  std::optional<std::vector<std::size_t>> NextShare(std::int64_t global_batch_size);

  // The loaders of torch::data call this before an epoch. At the end of an epoch it moves to the
  // next one. In the middle of an epoch it changes nothing, so that a resumed epoch is finished.
  // Samples that `drop_last` would leave out count as the end. With a new size it restarts the
  // current epoch.
  void reset(std::optional<std::size_t> new_size = std::nullopt) override;

  // Moves to the beginning of an epoch.
  void set_epoch(std::int64_t epoch) { MoveTo(epoch, 0); }
  std::int64_t epoch() const { return epoch_; }

  // The number of places of the epoch that the gang has visited, and the size of the dataset.
  std::int64_t offset() const { return offset_; }
  std::int64_t size() const { return size_; }

  // Throws attune::Error if this place does not exist.
  void MoveTo(std::int64_t epoch, std::int64_t offset);

  // Returns this rank's next `count` samples after the gang has visited `position` samples since
  // epoch 0. It continues into the following epochs and leaves out nothing. The result depends only
  // on the arguments, so training that derives the position from the step has no state to save. A
  // step of B samples over the gang advances the position by B.
  std::vector<std::int64_t> Take(std::int64_t position, std::int64_t count);

  // The position in the data, for CheckpointWriter::Write. It is the same on every rank and valid
  // for any number of ranks. Loading throws attune::Error if the dataset has another size.
  TensorMap state_dict() const;
  void load_state_dict(const TensorMap& state);

  // The same state for archives of torch::save.
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  const std::vector<std::int64_t>& Order(std::int64_t epoch);
  void SumWeights();
  bool AtEnd(std::int64_t global_batch_size) const;

  std::int64_t size_;
  Options options_;                                  // weights are moved out into sums_
  std::shared_ptr<const std::vector<double>> sums_;  // prefix sums of the weights; null: no weights
  std::int64_t epoch_ = 0;
  std::int64_t offset_ = 0;
  bool ended_ = false;               // next() has returned nullopt
  bool begins_ = false;              // reset() was called, and no sample taken since
  std::vector<std::int64_t> order_;  // the order of epoch order_epoch_
  std::int64_t order_epoch_ = -1;
};

}  // namespace attune::inline sdk
