#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "attune/data_loader.h"
#include "trainable/data/place.h"

namespace attune::inline sdk::trainable {
namespace {

// The maximum number of samples that a message about a failed batch lists.
constexpr std::size_t kListedSamplesMax = 8;

void Check(const DataLoaderOptions& options, int world_size) {
  if (options.batch_size < world_size) {
    throw Error("PrepareDataLoader: batch_size: a batch of " + std::to_string(options.batch_size) +
                " samples cannot be shared by " + std::to_string(world_size) +
                " workers; it counts the samples of all workers, and each worker needs at least "
                "one");
  }
  if (options.threads < 0 || options.prefetch_factor < 1) {
    throw Error("PrepareDataLoader: threads (" + std::to_string(options.threads) +
                ") must be at least 0, and prefetch_factor (" +
                std::to_string(options.prefetch_factor) + ") at least 1");
  }
}

// Throws if an epoch of this many samples has no batch.
void CheckEpoch(const std::string& subject, std::int64_t samples, const DataLoaderOptions& options,
                int world_size) {
  if (samples >= (options.drop_last ? options.batch_size : world_size)) return;
  throw Error(
      "PrepareDataLoader: " + subject + " " + std::to_string(samples) + " samples are fewer than " +
      (options.drop_last
           ? "one batch of " + std::to_string(options.batch_size) + ", and drop_last leaves nothing"
           : "the " + std::to_string(world_size) + " workers"));
}

// Batches of a dataset with indices.
class SampledBatches final : public BatchSource {
 public:
  SampledBatches(const DistributedSampler& sampler, const DataLoaderOptions& options)
      : options_(options), ahead_(sampler), place_(sampler) {}

  Request Next() override {
    auto samples = ahead_.NextShare(options_.batch_size);
    if (!samples) {  // a loaded position can be at the end of an epoch
      ahead_.set_epoch(ahead_.epoch() + 1);
      samples = ahead_.NextShare(options_.batch_size);
    }
    const std::int64_t left = ahead_.size() - ahead_.offset();
    const bool last = left == 0 || (options_.drop_last && left < options_.batch_size);
    if (last) ahead_.set_epoch(ahead_.epoch() + 1);
    return {.content = std::make_shared<std::vector<std::size_t>>(*std::move(samples)),
            .after = {ahead_.epoch(), ahead_.offset()},
            .last = last};
  }

  void MoveTo(const Place& place) override { ahead_.MoveTo(place.epoch, place.offset); }

  TensorMap StateAt(const Place& place) override {
    place_.MoveTo(place.epoch, place.offset);
    return place_.state_dict();
  }

  Place Load(const TensorMap& state) override {
    place_.load_state_dict(state);
    ahead_ = place_;
    return {place_.epoch(), place_.offset()};
  }

  std::string NameOf(const Request& request, const Place&) const override {
    if (request.content == nullptr) return "the sampler failed";
    const auto& samples = *std::static_pointer_cast<std::vector<std::size_t>>(request.content);
    std::string text = "the dataset failed on";
    for (std::size_t i = 0; i < samples.size() && i < kListedSamplesMax; ++i) {
      text += (i == 0 ? " samples " : ", ") + std::to_string(samples[i]);
    }
    return samples.size() > kListedSamplesMax ? text + ", …" : text;
  }

 private:
  const DataLoaderOptions options_;
  DistributedSampler ahead_;  // the position after the last result of Next()
  DistributedSampler place_;  // converts positions; it never computes an order
};

// Batches of a stream. Every rank reads all samples and keeps its share, with the rules of
// DistributedSampler.
class StreamedBatches final : public BatchSource {
 public:
  StreamedBatches(std::unique_ptr<StreamSamples> samples, const DataLoaderOptions& options,
                  const Context& context)
      : samples_(std::move(samples)),
        options_(options),
        rank_(context.rank()),
        world_(context.world_size()) {}

  Request Next() override {
    if (!begun_) Begin(place_);
    const std::int64_t needed = options_.drop_last ? options_.batch_size : 1;
    ReadAhead(needed);
    // A loaded position can be at the end of an epoch.
    if (std::ssize(ahead_) < needed && place_.offset > 0) Begin({place_.epoch + 1, 0});
    // If a resumed gang has fewer samples left than ranks, some ranks share a sample.
    ReadAhead(options_.drop_last ? 2 * options_.batch_size : options_.batch_size + world_);
    if (place_.offset == 0) {
      CheckEpoch("epoch " + std::to_string(place_.epoch) + " of the stream: its",
                 std::ssize(ahead_), options_, world_);
    }
    const std::int64_t left = std::ssize(ahead_);
    std::int64_t count = std::min(options_.batch_size, left);
    if (!options_.drop_last && left - count < world_) count = left;

    StreamShare share;
    for (std::int64_t i = rank_; i < count; i += world_) share.samples.push_back(ahead_[i]);
    if (share.samples.empty()) share.samples.push_back(ahead_[rank_ % count]);
    ahead_.erase(ahead_.begin(), ahead_.begin() + count);
    place_.offset += count;
    const bool last = std::ssize(ahead_) < needed;
    if (last) {
      place_ = {place_.epoch + 1, 0};
      begun_ = false;
    }
    return {
        .content = std::make_shared<StreamShare>(std::move(share)), .after = place_, .last = last};
  }

  void MoveTo(const Place& place) override {
    place_ = place;
    begun_ = false;
  }

  TensorMap StateAt(const Place& place) override {
    return {{kEpoch, NumberTensor(place.epoch)}, {kOffset, NumberTensor(place.offset)}};
  }

  Place Load(const TensorMap& state) override {
    const Place place{NumberIn(state, kEpoch), NumberIn(state, kOffset)};
    if (state.contains(kSize)) {
      throw Error(
          "data loader: the saved position is in a dataset with a size, but this is a stream; use "
          "the "
          "same data, or begin an epoch with set_epoch()");
    }
    if (place.epoch < 0 || place.offset < 0) {
      throw Error("data loader: the saved position is invalid: offset " +
                  std::to_string(place.offset) + " of epoch " + std::to_string(place.epoch));
    }
    MoveTo(place);
    return place;
  }

  std::string NameOf(const Request&, const Place& from) const override {
    return "the stream failed in epoch " + std::to_string(from.epoch) + ", on the batch after " +
           std::to_string(from.offset) + " samples";
  }

 private:
  void Begin(const Place& place) {
    place_ = place;
    ahead_.clear();
    ended_ = false;
    samples_->Begin(place.epoch, place.offset);
    begun_ = true;
  }

  void ReadAhead(std::int64_t count) {
    while (!ended_ && std::ssize(ahead_) < count) {
      if (auto sample = samples_->Next()) {
        ahead_.push_back(std::move(sample));
      } else {
        ended_ = true;
      }
    }
  }

  const std::unique_ptr<StreamSamples> samples_;
  const DataLoaderOptions options_;
  const std::int64_t rank_;
  const int world_;
  Place place_;         // the position after the last result of Next()
  bool begun_ = false;  // the stream is at place_, followed by the samples in ahead_
  bool ended_ = false;  // the rest of the stream is in ahead_
  std::deque<std::shared_ptr<void>> ahead_;  // samples of all ranks, read ahead
};

}  // namespace

std::unique_ptr<BatchSource> BatchSource::OfDataset(std::int64_t size,
                                                    const DataLoaderOptions& options,
                                                    const Context& context) {
  Check(options, context.world_size());
  CheckEpoch("the dataset's", size, options, context.world_size());
  return std::make_unique<SampledBatches>(
      context.PrepareSampler(
          size,
          {.shuffle = options.shuffle, .drop_last = options.drop_last, .weights = options.weights}),
      options);
}

std::unique_ptr<BatchSource> BatchSource::OfStream(std::unique_ptr<StreamSamples> samples,
                                                   const DataLoaderOptions& options,
                                                   const Context& context) {
  Check(options, context.world_size());
  if (options.shuffle || !options.weights.empty()) {
    throw Error(
        "PrepareDataLoader: a stream determines its own order; set shuffle to false and give no "
        "weights. The stream can shuffle in its set_epoch()");
  }
  return std::make_unique<StreamedBatches>(std::move(samples), options, context);
}

}  // namespace attune::inline sdk::trainable
