#pragma once

#include <torch/data/example.h>
#include <torch/types.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "attune/checkpoint.h"
#include "attune/context.h"
#include "attune/data_stream.h"
#include "attune/distributed_sampler.h"
#include "attune/error.h"

namespace attune::inline sdk {

// Options of Context::PrepareDataLoader().
struct DataLoaderOptions {
  // Samples of a global batch, over all ranks together, so that training does not depend on the
  // number of ranks. Must be at least the number of ranks.
  std::int64_t batch_size = 1;

  bool shuffle = true;     // false: every epoch uses the dataset's order; streams need false
  bool drop_last = false;  // true: leave out an incomplete last batch of an epoch

  // Number of threads that read ahead, each with a copy of the dataset. With 0, a batch is read
  // when it is requested. PyTorch calls this num_workers; a worker of Attune is a rank. If the
  // dataset draws random numbers from LibTorch's generator, training is repeatable only with 0.
  int threads = 1;

  // Batches per thread that are ready or being read, like prefetch_factor of PyTorch.
  int prefetch_factor = 2;

  // See DistributedSamplerOptions: if not empty, the relative frequency with which each sample is
  // drawn.
  std::vector<double> weights;
};

// The callback of VisitTensors, called for each tensor of a batch.
using TensorVisitor = std::function<void(at::Tensor&)>;

namespace trainable {

// Determines which batches of a dataset this rank gets, in order, without their contents.
class BatchSource {
 public:
  // A position in the data, counted over the whole gang.
  struct Place {
    std::int64_t epoch = 0;
    std::int64_t offset = 0;  // samples of the epoch before this position
  };

  struct Request {
    std::shared_ptr<void> content;  // std::vector<std::size_t>, or StreamShare
    Place after;                    // the position of the gang after this batch
    bool last = false;              // whether it is the last batch of its epoch
  };

  // Throw attune::Error if the options are invalid, or if an epoch would have no batch.
  static std::unique_ptr<BatchSource> OfDataset(std::int64_t size, const DataLoaderOptions& options,
                                                const Context& context);
  static std::unique_ptr<BatchSource> OfStream(std::unique_ptr<StreamSamples> samples,
                                               const DataLoaderOptions& options,
                                               const Context& context);
  virtual ~BatchSource() = default;

  // Returns the next batch; may read samples.
  virtual Request Next() = 0;
  virtual void MoveTo(const Place& place) = 0;

  // Returns the saved form of a position. Another thread may be in Next() at the same time.
  virtual TensorMap StateAt(const Place& place) = 0;

  // Moves to a saved position and returns it. Throws attune::Error if it belongs to other data.
  virtual Place Load(const TensorMap& state) = 0;

  // Returns the start of an error message about the batch after a position. `request` comes from
  // Next(), or is empty if Next() threw.
  virtual std::string NameOf(const Request& request, const Place& from) const = 0;
};

// The samples of a batch of a stream.
struct StreamShare {
  std::vector<std::shared_ptr<void>> samples;
};

// The part of DataLoader that does not depend on the dataset's type: threads that read ahead, and
// the order of the returned batches.
class Prefetcher {
 public:
  // Reads the batch of a request. For each value of `thread`, at most one call runs at a time.
  using Fetch = std::function<std::shared_ptr<void>(int thread, void* content)>;

  Prefetcher(std::unique_ptr<BatchSource> source, const DataLoaderOptions& options,
             Context& context, Fetch fetch);
  ~Prefetcher();  // waits for batches that are being read
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  std::shared_ptr<void> Next();
  bool epoch_ended() const;          // whether the last returned batch ended its epoch
  BatchSource::Place place() const;  // the position after the last returned batch
  void MoveTo(const BatchSource::Place& place);
  TensorMap state_dict() const;
  void load_state_dict(const TensorMap& state);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Calls `visit` for every tensor of a batch, to pin it and to move it to the device.
inline void VisitTensors(at::Tensor& tensor, const TensorVisitor& visit);
template <typename T>
void VisitTensors(std::vector<T>& items, const TensorVisitor& visit);
template <typename A, typename B>
void VisitTensors(std::pair<A, B>& items, const TensorVisitor& visit);
template <typename... T>
void VisitTensors(std::tuple<T...>& items, const TensorVisitor& visit);
template <typename Data, typename Target>
void VisitTensors(torch::data::Example<Data, Target>& example, const TensorVisitor& visit);
template <typename Data>
void VisitTensors(torch::data::Example<Data, torch::data::example::NoTarget>& example,
                  const TensorVisitor& visit);

inline void VisitTensors(at::Tensor& tensor, const TensorVisitor& visit) {
  if (tensor.defined()) visit(tensor);
}
template <typename T>
void VisitTensors(std::vector<T>& items, const TensorVisitor& visit) {
  for (T& item : items) VisitTensors(item, visit);
}
template <typename A, typename B>
void VisitTensors(std::pair<A, B>& items, const TensorVisitor& visit) {
  VisitTensors(items.first, visit);
  VisitTensors(items.second, visit);
}
template <typename... T>
void VisitTensors(std::tuple<T...>& items, const TensorVisitor& visit) {
  std::apply([&](auto&... item) { (VisitTensors(item, visit), ...); }, items);
}
template <typename Data, typename Target>
void VisitTensors(torch::data::Example<Data, Target>& example, const TensorVisitor& visit) {
  VisitTensors(example.data, visit);
  VisitTensors(example.target, visit);
}
template <typename Data>
void VisitTensors(torch::data::Example<Data, torch::data::example::NoTarget>& example,
                  const TensorVisitor& visit) {
  VisitTensors(example.data, visit);
}

template <typename T>
concept HasVisitableTensors = requires(T& batch, const TensorVisitor& visit) {
  VisitTensors(batch, visit);
};

template <typename D>
concept RandomAccessDataset = std::copy_constructible<D> &&
    requires(D& dataset, std::vector<std::size_t> samples) {
  typename D::BatchType;
  dataset.get_batch(samples);
  { *dataset.size() } -> std::convertible_to<std::size_t>;
};

}  // namespace trainable

// The batches of a dataset for this rank, on its device. Created by Context::PrepareDataLoader().
//
//   for (auto& batch : loader) {                      // the rest of the epoch
//     loss(model(batch.data), batch.target).backward();
//     …
//   }
//   auto batch = loader.Next();                       // or one by one, epoch after epoch
//
// A stream returns a requested number of samples and has no indices. Its batches follow the same
// rules; see docs/reference/cpp-sdk.md.
//
// Each epoch has a new order. Every rank gets the same number of batches, even if the last one is
// not evenly divisible (see DistributedSampler). The loader continues where it stopped, both after
// a loop that ended early and after its state was loaded. Each sample of an epoch is visited once,
// even if the number of ranks changes in between.
//
// Threads read the next batches while training computes. Batches for a GPU are pinned and copied
// asynchronously. An exception of the dataset is rethrown from the loop on the training thread, as
// attune::Error with its text and the requested samples.
//
// Not for concurrent use. Movable.
template <typename Dataset>
class DataLoader {
 public:
  // The batch type of the dataset. Its tensors are on the device of the rank.
  using Batch = typename trainable::WithoutOptional<typename Dataset::BatchType>::Type;

  // An input iterator over the rest of the epoch.
  class Iterator {
   public:
    // Member types of a standard iterator.
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;

    // The batch. It is valid until the iterator advances.
    Batch& operator*() { return batch_; }
    Batch* operator->() { return &batch_; }
    Iterator& operator++() {
      if (loader_->prefetcher_->epoch_ended()) {
        loader_ = nullptr;
      } else {
        batch_ = loader_->Next();
      }
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return loader_ == nullptr; }

   private:
    friend class DataLoader;
    explicit Iterator(DataLoader* loader) : loader_(loader), batch_(loader->Next()) {}
    DataLoader* loader_;
    Batch batch_;
  };

  // Called by Context::PrepareDataLoader().
  DataLoader(Dataset dataset, DataLoaderOptions options, Context& context)
      : device_(context.device()) {
    std::unique_ptr<trainable::BatchSource> source;
    trainable::Prefetcher::Fetch fetch;
    if constexpr (trainable::Stream<Dataset>) {
      using Parts = trainable::StreamOf<Dataset>;
      using Reader = trainable::StreamReader<typename Parts::Source>;
      const Parts stream(dataset);
      source = trainable::BatchSource::OfStream(
          std::make_unique<Reader>(stream.source(), options.batch_size), options, context);
      fetch = [copies = Copies(stream, options)](int thread, void* content) {
        std::vector<typename Reader::Sample> samples;
        for (const auto& sample : static_cast<trainable::StreamShare*>(content)->samples) {
          samples.push_back(std::move(*std::static_pointer_cast<typename Reader::Sample>(sample)));
        }
        return std::make_shared<Batch>((*copies)[thread].Transform(std::move(samples)));
      };
    } else {
      const auto size = dataset.size();
      if (!size) throw Error("PrepareDataLoader: the dataset must know its size");
      source =
          trainable::BatchSource::OfDataset(static_cast<std::int64_t>(*size), options, context);
      fetch = [copies = Copies(dataset, options)](int thread, void* content) {
        const auto& samples = *static_cast<const std::vector<std::size_t>*>(content);
        return std::make_shared<Batch>((*copies)[thread].get_batch(samples));
      };
    }
    if (device_.is_cuda()) {
      fetch = [fetch = std::move(fetch)](int thread, void* content) {
        std::shared_ptr<void> batch = fetch(thread, content);
        Visit(*static_cast<Batch*>(batch.get()),
              [](at::Tensor& tensor) { tensor = tensor.pin_memory(); });
        return batch;
      };
    }
    prefetcher_ = std::make_unique<trainable::Prefetcher>(std::move(source), options, context,
                                                          std::move(fetch));
  }

  // Returns the next batch. After the last batch of an epoch, it returns the first of the next
  // epoch.
  Batch Next() {
    Batch batch = std::move(*std::static_pointer_cast<Batch>(prefetcher_->Next()));
    if (!device_.is_cpu()) {
      Visit(batch,
            [this](at::Tensor& tensor) { tensor = tensor.to(device_, /*non_blocking=*/true); });
    }
    return batch;
  }

  // Iterates over the rest of the epoch, or over the whole next epoch if the current one has ended.
  Iterator begin() { return Iterator(this); }
  std::default_sentinel_t end() const { return std::default_sentinel; }

  // The epoch of the next batch, and how many of its samples the gang has visited.
  std::int64_t epoch() const { return prefetcher_->place().epoch; }
  std::int64_t offset() const { return prefetcher_->place().offset; }

  // Moves to the beginning of an epoch. Throws attune::Error if it is negative.
  void set_epoch(std::int64_t epoch) { prefetcher_->MoveTo({.epoch = epoch, .offset = 0}); }

  // The position after the last returned batch, as in DistributedSampler. Batches that were only
  // read ahead do not count.
  TensorMap state_dict() const { return prefetcher_->state_dict(); }
  void load_state_dict(const TensorMap& state) { prefetcher_->load_state_dict(state); }

 private:
  // One copy of the dataset for each thread, as in torch::data, because a dataset need not be
  // thread-safe.
  template <typename T>
  static std::shared_ptr<std::vector<T>> Copies(const T& dataset,
                                                const DataLoaderOptions& options) {
    return std::make_shared<std::vector<T>>(std::max(1, options.threads), dataset);
  }

  static void Visit(Batch& batch, const TensorVisitor& visit) {
    using trainable::VisitTensors;
    VisitTensors(batch, visit);
  }

  c10::Device device_;
  std::unique_ptr<trainable::Prefetcher> prefetcher_;
};

template <typename Dataset>
DataLoader<Dataset> Context::PrepareDataLoader(Dataset dataset, DataLoaderOptions options) {
  static_assert(
      trainable::RandomAccessDataset<Dataset> || trainable::StreamOfSamples<Dataset>,
      "PrepareDataLoader takes a torch::data dataset that can be copied: one with get_batch() of "
      "indices and size(), or a stream whose get_batch() of a number gives a vector of samples, "
      "mapped by any transforms");
  static_assert(trainable::HasVisitableTensors<typename DataLoader<Dataset>::Batch>,
                "PrepareDataLoader must find the tensors of a batch; map the dataset with "
                "torch::data::transforms::Stack, or give your batch's type a function "
                "VisitTensors(Batch&, const attune::TensorVisitor&) in its namespace");
  return DataLoader<Dataset>(std::move(dataset), options, *this);
}

}  // namespace attune::inline sdk
