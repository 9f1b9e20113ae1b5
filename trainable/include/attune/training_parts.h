#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/schedulers/lr_scheduler.h>
#include <torch/optim/schedulers/reduce_on_plateau_scheduler.h>
#include <torch/types.h>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "attune/amp.h"
#include "attune/checkpoint.h"
#include "attune/config.h"
#include "attune/context.h"
#include "attune/data_loader.h"
#include "attune/distributed_model.h"
#include "attune/metrics.h"
#include "attune/trainer_options.h"

namespace attune::inline sdk {

// The result of a data creator that also provides validation data.
template <typename Train, typename Validation = Train>
struct TrainerData {
  Train train;            // a dataset that PrepareDataLoader accepts
  Validation validation;  // a dataset that PrepareDataLoader accepts
};

namespace trainable {

// Stands for a creator or function that was not given.
struct None {};

// LibTorch's schedulers have no common base class.
using AnyScheduler =
    std::variant<torch::optim::LRScheduler*, torch::optim::ReduceLROnPlateauScheduler*>;

// Durations of an epoch on one worker, in seconds.
struct PassTimes {
  double total = 0;
  double data = 0;     // waiting for batches
  double forward = 0;  // this and the next two: in the default loop and TrainBatch()
  double backward = 0;
  double communication = 0;  // an estimate from the steps that LibTorch measures
};

// The result of one worker for an epoch of training, or for a validation pass.
struct PassResult {
  Metrics sums;     // sum of value × samples, by metric
  Metrics weights;  // number of samples, by metric
  std::int64_t samples = 0;
  std::int64_t batches = 0;
  PassTimes times;

  Metrics Means() const;
};

// The part of a worker's training that does not depend on types. It is the base of
// TrainingOperator, and executes the driver's commands.
class Training {
 public:
  Training(Context& context, const TorchTrainerOptions& options);
  virtual ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  virtual std::vector<torch::nn::Module*> modules() = 0;
  virtual std::vector<torch::optim::Optimizer*> optimizers() = 0;
  virtual std::vector<AnyScheduler> schedulers() = 0;
  virtual bool validates() const = 0;

  // Adds a value to a metric of this pass. The metric is the mean over all samples of all workers.
  // Does not wait for a tensor on a GPU.
  void Record(const std::string& metric, double value, std::int64_t samples);
  void Record(const std::string& metric, const at::Tensor& value, std::int64_t samples);

  // Whether the pass must end before the next batch; called before each batch.
  bool MustEndBefore(std::int64_t batches) const {
    return pass_options_.num_steps > 0 && batches >= pass_options_.num_steps;
  }
  // Called after each batch, with the number of its samples.
  void NoteBatch(std::int64_t samples, bool training);
  double& data_seconds() { return pass_.times.data; }

  PassResult RunEpoch(const TrainOptions& options);
  PassResult RunValidation(const TrainOptions& options);

  // Called after all parts are created. The batch is `batch_factor` times the batch for which the
  // learning rates were chosen.
  void Begin(double batch_factor);

  // The complete training state. Each name begins with the name of its checkpoint file.
  TensorMap State();
  // With `hyperparameters`, optimizers get the saved hyperparameters. Otherwise they keep those of
  // this configuration, and their learning rates move to the saved position of the schedule.
  void LoadState(const TensorMap& state, bool hyperparameters = true);

  // Steps every scheduler. A ReduceLROnPlateauScheduler uses the metric.
  void StepSchedulers(const double* metric);
  // Seeds the generators for a command, so that a repeated command outside an epoch draws the same
  // random numbers.
  void SeedCommand(std::uint64_t number, bool same_on_all_workers);

  // The number of finished epochs.
  std::int64_t epoch() const { return epoch_; }

  Context& context() const { return context_; }
  const Config& config() const { return context_.config(); }
  const TorchTrainerOptions& options() const { return options_; }
  // It is enabled by use_fp16.
  GradScaler& scaler() { return scaler_; }

 protected:
  virtual void Train() = 0;
  virtual void Validate() = 0;
  virtual double StepCommunicationSeconds() const = 0;

  // State of the current pass.
  PassResult pass_;
  TrainOptions pass_options_;
  std::map<std::string, at::Tensor> tensor_sums_;  // not yet in pass_, on the device

 private:
  PassResult Run(const TrainOptions& options, void (Training::*pass)());
  std::vector<double> LearningRates();
  void SetLearningRates(const std::vector<double>& rates);

  Context& context_;
  const TorchTrainerOptions options_;
  GradScaler scaler_;
  std::int64_t epoch_ = 0;
  std::vector<double> base_rates_;  // learning rates as created
  double batch_factor_ = 1;         // the argument of Begin()
};

// Adds the duration of its scope to `seconds`.
class Phase {
 public:
  // `exact`: wait until the GPU has finished its queued work.
  Phase(double& seconds, c10::Device device, bool exact);
  ~Phase();
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  double& seconds_;
  const c10::Device device_;
  const bool exact_;
  const std::chrono::steady_clock::time_point began_;
};

// ---- what creators return, as a tuple

template <typename T>
struct IsTuple : std::false_type {};
template <typename... T>
struct IsTuple<std::tuple<T...>> : std::true_type {};

template <typename T>
auto ToTuple(T value) {
  if constexpr (IsTuple<T>::value) {
    return value;
  } else {
    return std::tuple<T>(std::move(value));
  }
}

// A model that was created: a holder such as torch::nn::Linear, or std::shared_ptr<Module>.
template <typename M>
const auto& SharedModule(const M& model) {
  if constexpr (requires { typename M::ContainedType; }) {
    return model.ptr();
  } else {
    return model;
  }
}
template <typename M>
using ModuleType =
    typename std::remove_cvref_t<decltype(SharedModule(std::declval<const M&>()))>::element_type;

[[noreturn]] void ThrowEmptyModel();
template <typename M>
const std::shared_ptr<M>& CheckModel(const std::shared_ptr<M>& module) {
  if (module == nullptr) ThrowEmptyModel();
  return module;
}

template <typename T>
struct Pointee {
  using Type = T;
};
template <typename T>
struct Pointee<std::unique_ptr<T>> {
  using Type = T;
};
// Moves an optimizer or scheduler to the heap, because others refer to it and it must not move.
template <typename T>
std::unique_ptr<typename Pointee<T>::Type> ToUniquePtr(T value) {
  if constexpr (std::same_as<T, typename Pointee<T>::Type>) {
    return std::make_unique<T>(std::move(value));
  } else {
    return value;
  }
}

template <typename... T>
auto ToUniquePtrs(std::tuple<T...> values) {
  return std::apply([](auto&... each) { return std::tuple(ToUniquePtr(std::move(each))...); },
                    values);
}

// The single element of a tuple, or else the whole tuple.
template <typename... T>
decltype(auto) SingleOrAll(std::tuple<T...>& all) {
  if constexpr (sizeof...(T) == 1) {
    return std::get<0>(all);
  } else {
    return (all);
  }
}
template <typename... T>
auto UnwrapSingle(std::tuple<T...> all) {
  if constexpr (sizeof...(T) == 1) {
    return std::get<0>(std::move(all));
  } else {
    return all;
  }
}
template <typename... T>
auto TieAll(std::tuple<std::unique_ptr<T>...>& owned) {
  return std::apply([](auto&... each) { return std::tie(*each...); }, owned);
}

template <typename... M>
auto PrepareAll(Context& context, const DistributedModelOptions& options,
                const std::tuple<M...>& models) {
  return std::apply(
      [&](const auto&... model) {
        // A braced list keeps the order of evaluation: every worker makes the same calls.
        return std::tuple<DistributedModel<ModuleType<M>>...>{
            context.PrepareModel(CheckModel(SharedModule(model)), options)...};
      },
      models);
}

template <typename D>
struct DataOf {
  using Train = D;
  using Validation = None;
};
template <typename T, typename V>
struct DataOf<TrainerData<T, V>> {
  using Train = T;
  using Validation = V;
};

template <typename T>
struct LoaderOf {
  using Type = DataLoader<T>;
};
template <>
struct LoaderOf<None> {
  using Type = None;
};

// A function pointer, or a stateless function object such as a lambda that captures nothing.
template <typename F>
concept Stateless = (std::is_empty_v<F> && std::default_initializable<F>) ||
                    (std::is_pointer_v<F> && std::is_function_v<std::remove_pointer_t<F>>);

void CheckLoss(const at::Tensor& loss);
// The number of correct answers if this is classification: outputs [samples, classes], targets
// [samples] of integers. Undefined otherwise.
at::Tensor CountCorrect(const at::Tensor& output, const at::Tensor& target);

[[noreturn]] void ThrowCannotValidate();

// ---- what the creators of C make

template <typename C>
auto MakeModels(const C& creators, const Config& config) {
  return ToTuple(creators.model(config));
}
template <typename C, typename Models>
auto MakeOptimizers(const C& creators, Models& models, const Config& config) {
  return ToUniquePtrs(ToTuple(creators.optimizer(SingleOrAll(models), config)));
}
template <typename C>
auto MakeLosses(const C& creators, const Config& config) {
  if constexpr (std::same_as<decltype(C::loss), None>) {
    return std::tuple<>();
  } else {
    return ToTuple(creators.loss(config));
  }
}
template <typename C, typename Optimizers>
auto MakeSchedulers(const C& creators, Optimizers& optimizers, const Config& config) {
  if constexpr (std::same_as<decltype(C::scheduler), None>) {
    return std::tuple<>();
  } else {
    auto all = TieAll(optimizers);
    return ToUniquePtrs(ToTuple(creators.scheduler(SingleOrAll(all), config)));
  }
}

template <typename C>
struct CreatedTypes {
  using Models = decltype(MakeModels(std::declval<const C&>(), std::declval<const Config&>()));
  using Prepared =
      decltype(PrepareAll(std::declval<Context&>(), std::declval<const DistributedModelOptions&>(),
                          std::declval<const Models&>()));
  using Optimizers = decltype(MakeOptimizers(std::declval<const C&>(), std::declval<Models&>(),
                                             std::declval<const Config&>()));
  using Losses = decltype(MakeLosses(std::declval<const C&>(), std::declval<const Config&>()));
  using Schedulers = decltype(MakeSchedulers(std::declval<const C&>(), std::declval<Optimizers&>(),
                                             std::declval<const Config&>()));
  using Data = DataOf<decltype(std::declval<const C&>().data(std::declval<const Config&>()))>;
};

template <typename B>
concept HasDataAndTarget = requires(B& batch) {
  { batch.data } -> std::convertible_to<at::Tensor>;
  { batch.target } -> std::convertible_to<at::Tensor>;
};

// Batches of a loader for one pass; see TrainingOperator::batches().
template <typename Loader>
class Batches {
 public:
  class Iterator {
   public:
    using value_type = typename Loader::Batch;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;

    value_type& operator*() { return *at_; }
    value_type* operator->() { return &*at_; }
    Iterator& operator++() {
      std::int64_t samples = 0;
      if constexpr (requires { at_->data.size(0); }) samples = at_->data.size(0);
      pass_->training_.NoteBatch(samples, pass_->trains_);
      if (pass_->training_.MustEndBefore(++count_)) {
        ended_ = true;
      } else {
        const Phase phase(pass_->training_.data_seconds(), c10::kCPU, false);
        ++at_;
      }
      return *this;
    }
    bool operator==(std::default_sentinel_t end) const { return ended_ || at_ == end; }

   private:
    friend class Batches;
    explicit Iterator(Batches* pass) : pass_(pass), at_(pass->loader_.begin()) {}
    Batches* pass_;
    typename Loader::Iterator at_;
    std::int64_t count_ = 0;
    bool ended_ = false;
  };

  Batches(Training& training, Loader& loader, bool trains)
      : training_(training), loader_(loader), trains_(trains) {}

  Iterator begin() {
    const std::int64_t epoch = trains_ ? training_.epoch() : 0;
    const Phase phase(training_.data_seconds(), c10::kCPU, false);
    if (loader_.epoch() != epoch || loader_.offset() != 0) loader_.set_epoch(epoch);
    return Iterator(this);
  }
  std::default_sentinel_t end() const { return std::default_sentinel; }

 private:
  Training& training_;
  Loader& loader_;
  bool trains_;
};

// Whether the default validation pass works with the given creators.
template <typename C, typename Loader>
inline constexpr bool ValidatesByDefault = [] {
  if constexpr (!std::same_as<Loader, None> && !std::same_as<decltype(C::loss), None> &&
                std::tuple_size_v<typename CreatedTypes<C>::Models> == 1) {
    using Module = ModuleType<std::tuple_element_t<0, typename CreatedTypes<C>::Models>>;
    if constexpr (HasDataAndTarget<typename Loader::Batch>) {
      return requires(Module & module, at::Tensor & data) {
        { module.forward(data) } -> std::convertible_to<at::Tensor>;
      };
    }
  }
  return false;
}();

}  // namespace trainable

}  // namespace attune::inline sdk
