#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "attune/checkpoint.h"
#include "attune/init.h"
#include "attune/metrics.h"
#include "attune/packing.h"
#include "attune/trainer_options.h"
#include "attune/training_operator.h"

namespace attune::inline sdk {

// What a TorchTrainer trains, as functions, or lambdas that capture nothing: workers are other
// processes, so what a creator needs to know travels in the configuration.
//
//   attune::Creators{
//       .model = [](const attune::Config& config) { return Net(config.Int("width")); },
//       .data = [](const attune::Config&) { return attune::TrainerData{Train(), Validation()}; },
//       .optimizer = [](Net& net, const attune::Config& config) {
//         return torch::optim::SGD(net->parameters(), config.Real("lr"));
//       },
//       .loss = [](const attune::Config&) { return torch::nn::CrossEntropyLoss(); }}
//
// Every worker calls each of them once. Several models, optimizers, losses or schedulers at once
// are returned as a std::tuple; with more than one model, the optimizer creator is given the tuple
// of them, and the scheduler creator that of references to several optimizers.
template <typename Model, typename Data, typename Optimizer, typename Loss = trainable::None,
          typename Scheduler = trainable::None, typename TrainFunction = trainable::None,
          typename ValidationFunction = trainable::None>
struct Creators {
  // Config → a module's holder, or std::shared_ptr of a module.
  Model model;
  // Config → a torch::data dataset as PrepareDataLoader takes it, or TrainerData of two.
  Data data;
  // The model, Config → an optimizer of LibTorch, or a std::unique_ptr of one.
  Optimizer optimizer;
  // Config → what is called with output and target, and gives a scalar.
  Loss loss{};
  // The optimizer, Config → a learning-rate scheduler of LibTorch.
  Scheduler scheduler{};
  // TrainingOperator& → nothing; one epoch. Without it, TrainBatch() for each of batches().
  TrainFunction train_function{};
  // TrainingOperator& → nothing; one pass over the validation data.
  ValidationFunction validation_function{};
};

// Of one call of TorchTrainer::Train() or Validate().
struct TrainerStats {
  // Means over all samples of all workers. The default loops give train_loss, val_loss and, where
  // targets are classes, val_accuracy.
  Metrics metrics;
  // By worker, its own means; without reduce_results only.
  std::vector<Metrics> workers;

  std::int64_t epoch = 0;    // that was trained, from 1; or after which was validated
  int num_workers = 0;       // that did it
  int retries = 0;           // after losses of workers
  std::int64_t samples = 0;  // of all workers
  std::int64_t batches = 0;  // of the gang

  // Seconds; but for the first, means over the workers. Forward and backward are those of the
  // default loop and of TrainBatch(), communication is estimated from the steps that LibTorch
  // measures, and partly hidden by backward.
  double seconds = 0;
  double data_seconds = 0;
  double forward_seconds = 0;
  double backward_seconds = 0;
  double communication_seconds = 0;
};

namespace trainable {

using TrainingFactory = std::unique_ptr<Training> (*)(Context& context, const std::string& creators,
                                                      const TorchTrainerOptions& options);
// Calls a function, by its bytes, on a worker's training.
using ApplyFunction = void (*)(Training& training, const std::string& function, Packer& result);

// The part of TorchTrainer that does not depend on types: the driver of the gang.
class TrainerDriver {
 public:
  TrainerDriver(TrainingFactory factory, std::string creators, TorchTrainerOptions options);
  ~TrainerDriver();

  TrainerStats Train(const TrainOptions& options);
  TrainerStats Validate(const TrainOptions& options);
  void UpdateScheduler(const double* metric);
  TensorMap State();
  void LoadState(const TensorMap& state);
  std::vector<Unpacker> ApplyAll(ApplyFunction apply, const std::string& function);
  void Shutdown(bool force);
  int num_workers() const;
  const TorchTrainerOptions& options() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

CheckpointInfo SaveTrainer(const TensorMap& state, const Config& config,
                           const std::filesystem::path& folder);
TensorMap ReadTrainer(const std::filesystem::path& folder);
// Of the model of that place, in what State() gives.
void LoadModel(torch::nn::Module& module, const TensorMap& state, std::size_t index);
void RunTrials(Context& context, Training& training, double batch_factor);

// With ResizeRule::kScaleWithWorkers, makes batch_size what it is with so many workers instead of
// num_workers; how many times larger it is, and learning rates are to be, than it was.
double ResizeBatch(TorchTrainerOptions& options, int workers);

template <typename C>
concept StatelessCreators = Stateless<decltype(C::model)> && Stateless<decltype(C::data)> &&
    Stateless<decltype(C::optimizer)> && Stateless<decltype(C::loss)> &&
    Stateless<decltype(C::scheduler)> && Stateless<decltype(C::train_function)> &&
    Stateless<decltype(C::validation_function)>;

template <typename C>
constexpr void CheckCreators() {
  static_assert(StatelessCreators<C>,
                "creators have to be functions, or lambdas that capture nothing: workers are other "
                "processes; what they need to know belongs into the configuration");
  static_assert(
      requires(const C& c, const Config& config) { c.model(config); },
      "the model creator has to take (const attune::Config&)");
  static_assert(
      requires(const C& c, const Config& config) { c.data(config); },
      "the data creator has to take (const attune::Config&)");
  static_assert(
      !std::same_as<decltype(std::declval<const C&>().model(std::declval<const Config&>())), void>,
      "the model creator returns nothing");
  static_assert(
      !std::same_as<decltype(std::declval<const C&>().data(std::declval<const Config&>())), void>,
      "the data creator returns nothing");
}

// A function as bytes, for the same program in another process.
template <typename T>
std::string BytesOf(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}
template <typename T>
T FromBytes(const std::string& bytes) {
  T value{};
  std::memcpy(static_cast<void*>(&value), bytes.data(), std::min(sizeof value, bytes.size()));
  return value;
}

template <typename C>
std::unique_ptr<Training> MakeTraining(Context& context, const std::string& creators,
                                       const TorchTrainerOptions& options) {
  return std::make_unique<TrainingOperator<C>>(context, FromBytes<C>(creators), options);
}

}  // namespace trainable

// Trains a model on several workers that it starts itself, without a server: an object in the
// program's own main(), after attune::Init(). What RaySGD's PyTorchTrainer and Ray Train's
// TorchTrainer are in Python.
//
//   int main(int argc, char** argv) {
//     attune::Init(argc, argv);
//     attune::TorchTrainer trainer(attune::Creators{…}, {.num_workers = 2, .batch_size = 64});
//     for (int epoch = 0; epoch < 10; ++epoch) {
//       std::cout << attune::ToText(trainer.Train().metrics) << '\n';
//     }
//     auto net = trainer.GetModel();
//   }
//
// A worker that is lost ends the gang; the call that it was lost in starts another, of as many
// workers as there is room for, and does its work again from a copy of the state in memory. With
// equally many workers the outcome is the same, bit for bit, as without the loss (on CPUs). What a
// worker throws is not tried again.
//
// Every call throws attune::WorkerError when a worker failed for good, and attune::Error after
// Shutdown(). For one thread at a time. Several trainers may live at once.
template <typename C>
class TorchTrainer {
 public:
  // Starts the workers, and waits until each has created what it trains with.
  explicit TorchTrainer(C creators, TorchTrainerOptions options = {})
      : creators_(creators),
        driver_(&trainable::MakeTraining<C>, trainable::BytesOf(creators), std::move(options)) {
    trainable::CheckCreators<C>();
  }

  // One epoch.
  TrainerStats Train(TrainOptions options = {}) { return driver_.Train(options); }

  // One pass over the validation data, which changes nothing.
  TrainerStats Validate(TrainOptions options = {}) { return driver_.Validate(options); }

  // Steps the schedulers; those of ReduceLROnPlateauScheduler by the metric.
  void UpdateScheduler() { driver_.UpdateScheduler(nullptr); }
  void UpdateScheduler(double metric) { driver_.UpdateScheduler(&metric); }

  // The model as it is now, in this process and on the CPU; std::tuple of several.
  auto GetModel() {
    const TensorMap state = driver_.State();
    auto models = trainable::MakeModels(creators_, driver_.options().config);
    std::apply(
        [&](const auto&... model) {
          std::size_t index = 0;
          (trainable::LoadModel(*trainable::SharedModule(model), state, index++), ...);
        },
        models);
    return trainable::OneOf(std::move(models));
  }

  // All that training goes on from: "model/weight", "optimizer/0.exp_avg", "trainer/epoch"; of the
  // second model "model-1/…".
  TensorMap state_dict() { return driver_.State(); }
  void load_state_dict(const TensorMap& state) { driver_.LoadState(state); }

  // A checkpoint in a new folder inside of this one, whose path is returned: model.safetensors,
  // optimizer.safetensors and so on, as of a trial, complete or not there at all.
  CheckpointInfo Save(const std::filesystem::path& folder) {
    return trainable::SaveTrainer(driver_.State(), driver_.options().config, folder);
  }
  // From what Save() has returned, or a trial of AsTrainable() has saved.
  void Load(const std::filesystem::path& checkpoint) {
    driver_.LoadState(trainable::ReadTrainer(checkpoint));
  }

  // Calls a function, or a lambda that captures nothing, with each worker's TrainingOperator, and
  // returns what they return, by worker: numbers, texts, tensors, maps of them. What it changes
  // counts as training, and has to be changed on all alike; but what is not in state_dict(), such
  // as which parameters require gradients, does not come back when a worker is lost.
  template <trainable::Stateless F>
  auto ApplyAllWorkers(F function) {
    using Operator = TrainingOperator<C>;
    using R = std::invoke_result_t<F, Operator&>;
    const auto apply = [](trainable::Training& training, const std::string& bytes,
                          trainable::Packer& result) {
      auto& self = static_cast<Operator&>(training);
      const F call = trainable::FromBytes<F>(bytes);
      if constexpr (std::is_void_v<R>) {
        call(self);
      } else {
        trainable::Pack<R>(result, call(self));
      }
    };
    auto answers = driver_.ApplyAll(apply, trainable::BytesOf(function));
    if constexpr (!std::is_void_v<R>) {
      static_assert(trainable::Travels<R>,
                    "a function for all workers returns nothing, or what attune/packing.h carries: "
                    "numbers, std::string, tensors, Config, Metrics, and vectors, maps and tuples "
                    "of them");
      std::vector<R> results;
      for (auto& answer : answers) results.push_back(trainable::Unpack<R>(answer));
      return results;
    }
  }

  // Lets the workers go, or ends them at once. The destructor does the former.
  void Shutdown(bool force = false) { driver_.Shutdown(force); }

  // As they are now.
  int num_workers() const { return driver_.num_workers(); }

 private:
  C creators_;
  trainable::TrainerDriver driver_;
};

// The same creators as a trial of a sweep, for attune::Main():
//
//   return attune::Main(argc, argv, attune::AsTrainable(attune::Creators{…}, {.batch_size = 64}));
//
// A step is an epoch, followed by a pass over what there is to validate with, if any, and reports
// the metrics of both. Workers, seed and configuration are those of the trial; checkpoints are the
// trial's, and TorchTrainer::Load() takes them. Where an attempt has another number of workers than
// the one before it, resize_rule says what becomes of batch and learning rate; with
// kScaleWithWorkers, batch_size is that of num_workers.
template <typename C>
std::function<void(Context&)> AsTrainable(C creators, TorchTrainerOptions options = {}) {
  trainable::CheckCreators<C>();
  return [creators, options = std::move(options)](Context& context) {
    TorchTrainerOptions of_trial = options;
    of_trial.batch_size = context.config().IntOr("batch_size", options.batch_size);
    const double batch_factor = trainable::ResizeBatch(of_trial, context.world_size());
    TrainingOperator<C> training(context, creators, of_trial);
    trainable::RunTrials(context, training, batch_factor);
  };
}

}  // namespace attune::inline sdk
