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

// Of Context::PrepareDataLoader().
struct DataLoaderOptions {
  // Samples of a batch over all ranks together, so that training does not depend on their number.
  // Must be at least as large as that.
  std::int64_t batch_size = 1;

  bool shuffle = true;     // false: the order of the dataset, every epoch; a stream needs it so
  bool drop_last = false;  // true: leave out what does not fill the last batch of an epoch

  // Threads that read ahead, each with a copy of the dataset; 0 reads when a batch is asked for.
  // (PyTorch calls them num_workers; a worker of Attune's is a rank.) A dataset that draws random
  // numbers from LibTorch's generator makes training repeatable only with 0.
  int threads = 1;

  // Batches that a thread has ready or at hand, as PyTorch's.
  int prefetch_factor = 2;

  // As DistributedSamplerOptions's: if not empty, how often each sample is drawn, in proportion.
  std::vector<double> weights;
};

// What VisitTensors shows each tensor of a batch to.
using TensorVisitor = std::function<void(at::Tensor&)>;

namespace trainable {

// Which batches of a dataset this rank gets, one after the other, without what is in them.
class BatchSource {
 public:
  // In the data, counted over the gang.
  struct Place {
    std::int64_t epoch = 0;
    std::int64_t offset = 0;  // samples of the epoch before it
  };

  struct Request {
    std::shared_ptr<void> content;  // std::vector<std::size_t>, or StreamShare
    Place after;                    // where the gang is with this batch
    bool last = false;              // of its epoch
  };

  // Throw attune::Error when the options make no sense or an epoch would have no batch.
  static std::unique_ptr<BatchSource> OfDataset(std::int64_t size, const DataLoaderOptions& options,
                                                const Context& context);
  static std::unique_ptr<BatchSource> OfStream(std::unique_ptr<StreamSamples> samples,
                                               const DataLoaderOptions& options,
                                               const Context& context);
  virtual ~BatchSource() = default;

  // The next batch; may read samples.
  virtual Request Next() = 0;
  virtual void MoveTo(const Place& place) = 0;

  // A place as it is saved; may be called while another thread is in Next(). Load() moves to one.
  // Throws attune::Error for that of other data.
  virtual TensorMap StateAt(const Place& place) = 0;
  virtual Place Load(const TensorMap& state) = 0;

  // Begins the text of an error about the batch after a place. Next() gave the request, or threw.
  virtual std::string NameOf(const Request& request, const Place& from) const = 0;
};

// Samples of a stream.
struct StreamShare {
  std::vector<std::shared_ptr<void>> samples;
};

// The part of DataLoader that does not depend on the dataset's type: threads that read ahead, and
// the order in which batches are handed out.
class Prefetcher {
 public:
  // Makes a batch of a request's content; called by one thread at a time for each `thread`.
  using Fetch = std::function<std::shared_ptr<void>(int thread, void* content)>;

  Prefetcher(std::unique_ptr<BatchSource> source, const DataLoaderOptions& options,
             Context& context, Fetch fetch);
  ~Prefetcher();  // waits for the batches that are being read
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  std::shared_ptr<void> Next();
  bool epoch_ended() const;          // the batch handed out last was its epoch's last
  BatchSource::Place place() const;  // after the batch handed out last
  void MoveTo(const BatchSource::Place& place);
  TensorMap state_dict() const;
  void load_state_dict(const TensorMap& state);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Every tensor of a batch, to pin it and to move it to the device.
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

// Batches of a dataset for this rank, on its device, made by Context::PrepareDataLoader().
//
//   for (auto& batch : loader) {                      // what is left of the epoch
//     loss(model(batch.data), batch.target).backward();
//     …
//   }
//   auto batch = loader.Next();                       // or one by one, epoch after epoch
//
// A stream, which is asked for a number of samples instead of for indices, gives batches by the
// same rules; see docs/reference/cpp-sdk.md.
//
// Each epoch is shuffled anew, and every rank gets equally many batches, also where the last one
// does not come out even (see DistributedSampler). The loader goes on where it was, whether a loop
// was left early or its state was loaded: with as many ranks as before or with others, each sample
// of an epoch is visited once.
//
// While training computes, threads read the next batches; those for a GPU are pinned, and copied
// while it computes. An exception of the dataset comes out of the loop on the training thread, as
// attune::Error with its text and the samples that it was asked for.
//
// Not for concurrent use. Movable.
template <typename Dataset>
class DataLoader {
 public:
  // What the dataset calls one, its tensors on the device of the rank.
  using Batch = typename trainable::WithoutOptional<typename Dataset::BatchType>::Type;

  // An input iterator over what is left of the epoch.
  class Iterator {
   public:
    // As of any other.
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;

    // The batch; it stays until the iterator moves on, to the next one or to the end of the epoch.
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
      if (!size) throw Error("PrepareDataLoader: the dataset has to know its size");
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

  // The next batch; after the last one of an epoch the first one of the next.
  Batch Next() {
    Batch batch = std::move(*std::static_pointer_cast<Batch>(prefetcher_->Next()));
    if (!device_.is_cpu()) {
      Visit(batch,
            [this](at::Tensor& tensor) { tensor = tensor.to(device_, /*non_blocking=*/true); });
    }
    return batch;
  }

  // What is left of the epoch; all of the next one after its end.
  Iterator begin() { return Iterator(this); }
  std::default_sentinel_t end() const { return std::default_sentinel; }

  // The epoch of the coming batch, and the samples of it that the gang has visited.
  std::int64_t epoch() const { return prefetcher_->place().epoch; }
  std::int64_t offset() const { return prefetcher_->place().offset; }

  // Goes to the beginning of an epoch. Throws attune::Error where that is negative.
  void set_epoch(std::int64_t epoch) { prefetcher_->MoveTo({.epoch = epoch, .offset = 0}); }

  // As DistributedSampler's: after the batches that were handed out, whatever has been read ahead.
  TensorMap state_dict() const { return prefetcher_->state_dict(); }
  void load_state_dict(const TensorMap& state) { prefetcher_->load_state_dict(state); }

 private:
  // One for each thread, as torch::data does: datasets need not be safe to share.
  template <typename T>
  static std::shared_ptr<std::vector<T>> Copies(const T& one, const DataLoaderOptions& options) {
    return std::make_shared<std::vector<T>>(std::max(1, options.threads), one);
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
                "PrepareDataLoader has to find the tensors of a batch: map the dataset with "
                "torch::data::transforms::Stack, or give your batch's type a function "
                "VisitTensors(Batch&, const attune::TensorVisitor&) in its namespace");
  return DataLoader<Dataset>(std::move(dataset), options, *this);
}

}  // namespace attune::inline sdk
