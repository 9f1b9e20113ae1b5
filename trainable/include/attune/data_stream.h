#pragma once

#include <torch/data/datasets/map.h>
#include <torch/types.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

// Adapters between DataLoader and a stream. A stream is a torch::data dataset that is asked for a
// number of samples, and not for indices.
namespace attune::inline sdk::trainable {

// The samples of a stream in order, independent of their type.
class StreamSamples {
 public:
  virtual ~StreamSamples() = default;

  // Moves to an epoch and skips its first `skipped` samples, or all samples if it has fewer.
  virtual void Begin(std::int64_t epoch, std::int64_t skipped) = 0;

  // Returns the next sample; null at the end of the epoch.
  virtual std::shared_ptr<void> Next() = 0;
};

template <typename T>
struct WithoutOptional {
  using Type = T;
};
template <typename T>
struct WithoutOptional<std::optional<T>> {
  using Type = T;
};

// Separates a stream from the transforms that it is mapped by. Transform() applies them to the
// share of a rank.
template <typename Dataset>
class StreamOf {
 public:
  using Source = Dataset;
  using Batch = typename WithoutOptional<typename Dataset::BatchType>::Type;

  explicit StreamOf(const Dataset& dataset) : source_(dataset) {}
  const Source& source() const { return source_; }
  Batch Transform(Batch samples) { return samples; }

 private:
  Source source_;
};

template <typename Dataset, typename Map>
class StreamOf<torch::data::datasets::MapDataset<Dataset, Map>> {
 public:
  using Source = typename StreamOf<Dataset>::Source;
  using Batch = typename Map::OutputBatchType;

  explicit StreamOf(torch::data::datasets::MapDataset<Dataset, Map> dataset)
      : inner_(dataset.dataset()), map_(dataset.transform()) {}
  const Source& source() const { return inner_.source(); }
  Batch Transform(typename StreamOf<Source>::Batch samples) {
    return map_.apply_batch(inner_.Transform(std::move(samples)));
  }

 private:
  StreamOf<Dataset> inner_;
  Map map_;
};

// Whether T is a std::vector.
template <typename T>
inline constexpr bool kIsVector = false;
template <typename T>
inline constexpr bool kIsVector<std::vector<T>> = true;

template <typename D>
concept Stream =
    std::copy_constructible<D> && std::same_as<typename D::BatchRequestType, std::size_t>;

template <typename D>
concept StreamOfSamples =
    Stream<D> && kIsVector<typename StreamOf<typename StreamOf<D>::Source>::Batch>;

// Reads a stream. Each epoch uses a new copy of the stream.
template <typename Source>
class StreamReader final : public StreamSamples {
 public:
  using Sample = typename StreamOf<Source>::Batch::value_type;

  // `at_once`: how many samples to request from the stream at a time.
  StreamReader(Source stream, std::size_t at_once)
      : stream_(std::move(stream)), at_once_(at_once) {}

  void Begin(std::int64_t epoch, std::int64_t skipped) override {
    read_.clear();
    current_.emplace(stream_);
    if constexpr (requires { current_->set_epoch(epoch); }) current_->set_epoch(epoch);
    if constexpr (requires { current_->reset(); }) current_->reset();
    const auto size = current_->size();
    left_ = size ? *size : std::numeric_limits<std::size_t>::max();
    auto skip = std::min(static_cast<std::size_t>(skipped), left_);
    if constexpr (requires { current_->skip(skip); }) {
      current_->skip(skip);
      left_ -= skip;
    } else {
      while (skip > 0 && Next() != nullptr) --skip;
    }
  }

  std::shared_ptr<void> Next() override {
    if (read_.empty()) Read();
    if (read_.empty()) return nullptr;
    auto sample = std::make_shared<Sample>(std::move(read_.front()));
    read_.pop_front();
    return sample;
  }

 private:
  void Read() {
    const std::size_t wanted = std::min(at_once_, left_);
    if (wanted == 0) return;
    auto samples = current_->get_batch(wanted);
    if constexpr (Source::is_stateful) {
      if (samples) Keep(*std::move(samples));
    } else {
      Keep(std::move(samples));
    }
    if (read_.size() > left_) read_.erase(read_.begin() + left_, read_.end());
    left_ = read_.empty() ? 0 : left_ - std::min(left_, read_.size());
  }

  void Keep(std::vector<Sample> samples) {
    for (Sample& sample : samples) read_.push_back(std::move(sample));
  }

  const Source stream_;
  const std::size_t at_once_;
  std::optional<Source> current_;
  std::size_t left_ = 0;  // samples of the epoch that have not been requested yet
  std::deque<Sample> read_;
};

}  // namespace attune::inline sdk::trainable
