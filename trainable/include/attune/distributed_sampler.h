#pragma once

#include <torch/data/samplers/base.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "attune/checkpoint.h"

namespace attune::inline sdk {

// Of DistributedSampler, and of Context::PrepareSampler().
struct DistributedSamplerOptions {
  // PrepareSampler() fills these in.
  int rank = 0;
  int world_size = 1;
  std::uint64_t seed = 0;

  bool shuffle = true;     // false: the order of the dataset, every epoch
  bool drop_last = false;  // true: leave out what does not fill the last batch of an epoch

  // If not empty: one number for each sample, finite and at least 0. An epoch then has as many
  // draws as the dataset has samples. Each draws one with a probability in proportion to its
  // weight, also one that was drawn before. Needs `shuffle`.
  std::vector<double> weights;
};

// Which samples of a dataset this rank visits, and in which order: a torch::data sampler.
//
// The order of an epoch is a permutation, or with weights a series of draws, keyed by (seed,
// epoch): the same on every rank, machine and standard library. The gang visits one place of it
// after the other, and counts them in positions: epoch × dataset size + place. Of a global batch
// rank r takes places r, r + world_size, …, so a batch is the same set whatever the number of ranks
// that share it, and a trial that is resumed with another number of ranks visits exactly the
// samples that are left.
//
// Every rank gets equally many batches. Nothing is padded: shares of one batch may differ by one
// sample, and places that remain of an epoch but are fewer than the ranks go to its last batch.
// Only a gang that is resumed where fewer samples are left than it has ranks repeats some of them.
class DistributedSampler final : public torch::data::samplers::Sampler<> {
 public:
  // What it is made with.
  using Options = DistributedSamplerOptions;

  // Throws attune::Error when rank, world_size or weights make no sense, or size is negative.
  DistributedSampler(std::int64_t size, Options options);

  // This rank's share of the gang's next batch_size × world_size samples; nothing at the end of the
  // epoch.
  std::optional<std::vector<std::size_t>> next(std::size_t batch_size) override;

  // The same for a global batch that need not be a multiple of the number of ranks. Throws
  // attune::Error when it is smaller than that.
  std::optional<std::vector<std::size_t>> NextShare(std::int64_t global_batch_size);

  // Called by torch::data's loaders before an epoch: goes on to the next one if the current one is
  // at its end, and stays where it is in the midst of one, so that a resumed epoch is finished;
  // what `drop_last` would leave out of it counts as its end. With another size it begins the
  // current epoch anew.
  void reset(std::optional<std::size_t> new_size = std::nullopt) override;

  // Goes to the beginning of an epoch.
  void set_epoch(std::int64_t epoch) { MoveTo(epoch, 0); }
  std::int64_t epoch() const { return epoch_; }

  // Places of the epoch that the gang has visited, and samples of the dataset.
  std::int64_t offset() const { return offset_; }
  std::int64_t size() const { return size_; }

  // Throws attune::Error when there is no such place.
  void MoveTo(std::int64_t epoch, std::int64_t offset);

  // The next `count` samples of this rank when the gang has visited `position` since epoch 0; goes
  // on into the following epochs and leaves out nothing. What to visit is thus a function of the
  // position alone: training that derives it from the step has no state to save. A step of B
  // samples over the gang moves the position by B.
  std::vector<std::int64_t> Take(std::int64_t position, std::int64_t count);

  // The place in the data, for CheckpointWriter::Write: the same on every rank, and good for any
  // number of ranks. Loading throws attune::Error when the dataset has another size.
  TensorMap state_dict() const;
  void load_state_dict(const TensorMap& state);

  // The same for archives of torch::save.
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  const std::vector<std::int64_t>& Order(std::int64_t epoch);
  void SumWeights();
  bool AtEnd(std::int64_t global_batch_size) const;

  std::int64_t size_;
  Options options_;                                  // without the weights
  std::shared_ptr<const std::vector<double>> sums_;  // of the weights up to each; null: no weights
  std::int64_t epoch_ = 0;
  std::int64_t offset_ = 0;
  bool ended_ = false;               // next() has said so
  bool begins_ = false;              // reset() was called, and nothing taken since
  std::vector<std::int64_t> order_;  // of `order_epoch_`
  std::int64_t order_epoch_ = -1;
};

}  // namespace attune::inline sdk
