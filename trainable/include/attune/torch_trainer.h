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

// The parts that a TorchTrainer trains, as functions or lambdas that capture nothing. Workers are
// other processes, so pass values to creators in the configuration.
//
//   attune::Creators{
//       .model = [](const attune::Config& config) { return Net(config.Int("width")); },
//       .data = [](const attune::Config&) { return attune::TrainerData{Train(), Validation()}; },
//       .optimizer = [](Net& net, const attune::Config& config) {
//         return torch::optim::SGD(net->parameters(), config.Real("lr"));
//       },
//       .loss = [](const attune::Config&) { return torch::nn::CrossEntropyLoss(); }}
//
// Every worker calls each of them once. A creator may return a std::tuple of several models,
// optimizers, losses or schedulers. With several models, the optimizer creator gets the tuple of
// models. With several optimizers, the scheduler creator gets a tuple of references to them.
template <typename Model, typename Data, typename Optimizer, typename Loss = trainable::None,
          typename Scheduler = trainable::None, typename TrainFunction = trainable::None,
          typename ValidationFunction = trainable::None>
struct Creators {
  // Config → a module holder, or a std::shared_ptr to a module.
  Model model;
  // Config → a torch::data dataset that PrepareDataLoader accepts, or TrainerData with two of them.
  Data data;
  // (model, Config) → a LibTorch optimizer, or a std::unique_ptr to one.
  Optimizer optimizer;
  // Config → a callable that takes output and target, and returns a scalar.
  Loss loss{};
  // (optimizer, Config) → a LibTorch learning-rate scheduler.
  Scheduler scheduler{};
  // TrainingOperator& → void; trains one epoch. Default: TrainBatch() for each of batches().
  TrainFunction train_function{};
  // TrainingOperator& → void; one pass over the validation data.
  ValidationFunction validation_function{};
};

// The result of one call of TorchTrainer::Train() or Validate().
struct TrainerStats {
  // Means over all samples of all workers. The default loops record train_loss, val_loss and, if
  // targets are classes, val_accuracy.
  Metrics metrics;
  // The means of each worker; filled only if reduce_results is false.
  std::vector<Metrics> workers;

  std::int64_t epoch =
      0;  // the epoch that was trained, counted from 1, or the last one before validation
  int num_workers = 0;       // workers that took part
  int retries = 0;           // retries after workers were lost
  std::int64_t samples = 0;  // samples of all workers
  std::int64_t batches = 0;  // global batches

  // Durations. All except `seconds` are means over the workers. Forward and backward are measured
  // in the default loop and in TrainBatch(). Communication is estimated from the steps that
  // LibTorch measures; backward hides part of it.
  double seconds = 0;
  double data_seconds = 0;
  double forward_seconds = 0;
  double backward_seconds = 0;
  double communication_seconds = 0;
};

namespace trainable {

using TrainingFactory = std::unique_ptr<Training> (*)(Context& context, const std::string& creators,
                                                      const TorchTrainerOptions& options);
// Calls a function, given as bytes, on the training of a worker.
using ApplyFunction = void (*)(Training& training, const std::string& function, Packer& result);

// The part of TorchTrainer that does not depend on types. It drives the gang.
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
// Loads the model with this index from a result of State().
void LoadModel(torch::nn::Module& module, const TensorMap& state, std::size_t index);
void RunTrial(Context& context, Training& training, double batch_factor);

// With ResizeRule::kScaleWithWorkers, scales batch_size from num_workers to `workers` workers.
// Returns the factor by which the batch and the learning rates grow.
double ResizeBatch(TorchTrainerOptions& options, int workers);

template <typename C>
concept StatelessCreators = Stateless<decltype(C::model)> && Stateless<decltype(C::data)> &&
    Stateless<decltype(C::optimizer)> && Stateless<decltype(C::loss)> &&
    Stateless<decltype(C::scheduler)> && Stateless<decltype(C::train_function)> &&
    Stateless<decltype(C::validation_function)>;

template <typename C>
constexpr void CheckCreators() {
  static_assert(
      StatelessCreators<C>,
      "creators must be functions, or lambdas that capture nothing, because workers are other "
      "processes; pass values in the configuration");
  static_assert(
      requires(const C& c, const Config& config) { c.model(config); },
      "the model creator must take (const attune::Config&)");
  static_assert(
      requires(const C& c, const Config& config) { c.data(config); },
      "the data creator must take (const attune::Config&)");
  static_assert(
      !std::same_as<decltype(std::declval<const C&>().model(std::declval<const Config&>())), void>,
      "the model creator returns nothing");
  static_assert(
      !std::same_as<decltype(std::declval<const C&>().data(std::declval<const Config&>())), void>,
      "the data creator returns nothing");
}

// A function as bytes, for another process of the same program.
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

// Trains a model on several workers that it starts itself, without a server. Create it in the
// program's own main(), after attune::Init(). It corresponds to PyTorchTrainer of RaySGD and
// TorchTrainer of Ray Train in Python.
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
// If a worker is lost, the gang ends. The running call starts a new gang with as many workers as
// are available, and repeats its work from a copy of the state in memory. With the same number of
// workers the result on CPUs is identical, bit for bit, to a run without the loss. An exception of
// a worker is not retried.
//
// Every call throws attune::WorkerError if a worker failed permanently, and attune::Error after
// Shutdown(). Use a trainer from one thread at a time. Several trainers may exist at once.
template <typename C>
class TorchTrainer {
 public:
  // Starts the workers, and waits until each has called its creators.
  explicit TorchTrainer(C creators, TorchTrainerOptions options = {})
      : creators_(creators),
        driver_(&trainable::MakeTraining<C>, trainable::BytesOf(creators), std::move(options)) {
    trainable::CheckCreators<C>();
  }

  // Trains one epoch.
  TrainerStats Train(TrainOptions options = {}) { return driver_.Train(options); }

  // Makes one pass over the validation data, without training.
  TrainerStats Validate(TrainOptions options = {}) { return driver_.Validate(options); }

  // Steps the schedulers. Schedulers of type ReduceLROnPlateauScheduler need the metric.
  void UpdateScheduler() { driver_.UpdateScheduler(nullptr); }
  void UpdateScheduler(double metric) { driver_.UpdateScheduler(&metric); }

  // A copy of the current model in this process, on the CPU; a std::tuple if there are several.
  auto GetModel() {
    const TensorMap state = driver_.State();
    auto models = trainable::MakeModels(creators_, driver_.options().config);
    std::apply(
        [&](const auto&... model) {
          std::size_t index = 0;
          (trainable::LoadModel(*trainable::SharedModule(model), state, index++), ...);
        },
        models);
    return trainable::UnwrapSingle(std::move(models));
  }

  // The complete training state, with names such as "model/weight", "optimizer/0.exp_avg" and
  // "trainer/epoch". The second model has names such as "model-1/weight".
  TensorMap state_dict() { return driver_.State(); }
  void load_state_dict(const TensorMap& state) { driver_.LoadState(state); }

  // Saves a checkpoint in a new subfolder of `folder`, and returns the path of that subfolder. It
  // has the same files as a trial's checkpoint, such as model.safetensors, and appears complete or
  // not at all.
  CheckpointInfo Save(const std::filesystem::path& folder) {
    return trainable::SaveTrainer(driver_.State(), driver_.options().config, folder);
  }
  // Loads a checkpoint of Save(), or of a trial that used AsTrainable().
  void Load(const std::filesystem::path& checkpoint) {
    driver_.LoadState(trainable::ReadTrainer(checkpoint));
  }

  // Calls a function, or a lambda that captures nothing, with the TrainingOperator of each worker.
  // Returns the results by worker: numbers, texts, tensors, or maps of them. Changes that it makes
  // count as training and must be the same on all workers. Changes outside state_dict(), such as
  // which parameters require gradients, are lost when a worker is lost.
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
      static_assert(
          trainable::Travels<R>,
          "a function for all workers must return void or a type that attune/packing.h supports: "
          "numbers, std::string, tensors, Config, Metrics, and vectors, maps and tuples "
          "of them");
      std::vector<R> results;
      for (auto& answer : answers) results.push_back(trainable::Unpack<R>(answer));
      return results;
    }
  }

  // Waits for the workers to exit, or kills them with `force`. The destructor waits.
  void Shutdown(bool force = false) { driver_.Shutdown(force); }

  // The current number of workers.
  int num_workers() const { return driver_.num_workers(); }

 private:
  C creators_;
  trainable::TrainerDriver driver_;
};

// The same creators as a trial of a sweep, for attune::Main():
//
//   return attune::Main(argc, argv, attune::AsTrainable(attune::Creators{…}, {.batch_size = 64}));
//
// A step is an epoch, followed by a validation pass if there is anything to validate. It reports
// the metrics of both. Workers, seed and configuration come from the trial. TorchTrainer::Load()
// reads the trial's checkpoints. If an attempt has a different number of workers from the one
// before, resize_rule decides about batch and learning rate. With kScaleWithWorkers, batch_size is
// meant for num_workers workers.
template <typename C>
std::function<void(Context&)> AsTrainable(C creators, TorchTrainerOptions options = {}) {
  trainable::CheckCreators<C>();
  return [creators, options = std::move(options)](Context& context) {
    TorchTrainerOptions trial_options = options;
    trial_options.batch_size = context.config().IntOr("batch_size", options.batch_size);
    const double batch_factor = trainable::ResizeBatch(trial_options, context.world_size());
    TrainingOperator<C> training(context, creators, trial_options);
    trainable::RunTrial(context, training, batch_factor);
  };
}

}  // namespace attune::inline sdk
