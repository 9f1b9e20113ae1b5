#pragma once

#include <torch/types.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "attune/amp.h"
#include "attune/config.h"
#include "attune/context.h"
#include "attune/data_loader.h"
#include "attune/distributed_model.h"
#include "attune/trainer_options.h"
#include "attune/training_parts.h"

namespace attune::inline sdk {

// The training of one worker, as passed to a custom train_function or validation_function of
// Creators:
//
//   .train_function = [](auto& training) {
//     training.model().train();
//     for (auto& batch : training.batches()) {
//       const auto loss = training.loss()(training.model()(batch.data), batch.target);
//       training.optimizer().zero_grad();
//       loss.backward();
//       training.optimizer().step();
//       training.Record("train_loss", loss, batch.data.size(0));
//     }
//   }
//
// If creators return tuples, model<1>(), optimizer<1>(), loss<1>() and scheduler<1>() are their
// second elements.
template <typename C>
class TrainingOperator final : public trainable::Training {
 public:
  // The DataLoader of the training data.
  using TrainLoader =
      typename trainable::LoaderOf<typename trainable::CreatedTypes<C>::Data::Train>::Type;
  // The DataLoader of the validation data, or None without validation data.
  using ValidationLoader =
      typename trainable::LoaderOf<typename trainable::CreatedTypes<C>::Data::Validation>::Type;

  // Calls all creators.
  TrainingOperator(Context& context, const C& creators, const TorchTrainerOptions& options)
      : Training(context, options),
        creators_(creators),
        models_(trainable::MakeModels(creators_, config())),
        prepared_(trainable::PrepareAll(context, options.model, models_)),
        optimizers_(trainable::MakeOptimizers(creators_, models_, config())),
        losses_(trainable::MakeLosses(creators_, config())),
        schedulers_(trainable::MakeSchedulers(creators_, optimizers_, config())),
        loaders_(MakeLoaders(creators_.data(config()))) {}

  // The prepared model, whose gradients are synchronised. `model<I>()->forward(…)` calls the module
  // directly, without synchronisation.
  template <std::size_t I = 0>
  auto& model() {
    return std::get<I>(prepared_);
  }
  template <std::size_t I = 0>
  auto& optimizer() {
    return *std::get<I>(optimizers_);
  }
  // The callable that the loss creator returned.
  template <std::size_t I = 0>
  auto& loss() {
    return std::get<I>(losses_);
  }
  template <std::size_t I = 0>
  auto& scheduler() {
    return *std::get<I>(schedulers_);
  }
  TrainLoader& train_loader() { return loaders_.train; }
  ValidationLoader& validation_loader() { return loaders_.validation; }

  // The batches of this pass, for a loop: the whole epoch, or num_steps of it. It counts samples
  // and time, and steps schedulers with SchedulerStep::kBatch.
  auto batches() { return trainable::Batches<TrainLoader>(*this, loaders_.train, true); }
  auto validation_batches() {
    return trainable::Batches<ValidationLoader>(*this, loaders_.validation, false);
  }

  // Runs forward, loss, backward and an optimizer step, like the default loop.
  template <typename Batch>
  void TrainBatch(Batch& batch) {
    at::Tensor loss;
    {
      const trainable::Phase phase(pass_.times.forward, context().device(), pass_options_.profile);
      loss = Forward(model(), batch).first;
    }
    {
      const trainable::Phase phase(pass_.times.backward, context().device(), pass_options_.profile);
      optimizer().zero_grad();
      scaler().scale(loss).backward();
    }
    scaler().step(optimizer());
    scaler().update();
    Record("train_loss", loss, batch.data.size(0));
  }

  // Records val_loss and, if targets are classes, val_accuracy.
  template <typename Batch>
  void ValidateBatch(Batch& batch) {
    const at::NoGradGuard no_grad;
    const auto [loss, output] = Forward(*model(), batch);
    Record("val_loss", loss, batch.data.size(0));
    const at::Tensor correct = trainable::CountCorrect(output, batch.target);
    if (correct.defined()) {
      Record("val_accuracy", correct / batch.data.size(0), batch.data.size(0));
    }
  }

  // For the SDK only.
  std::vector<torch::nn::Module*> modules() override {
    std::vector<torch::nn::Module*> all;
    std::apply([&](auto&... model) { (all.push_back(&*model), ...); }, prepared_);
    return all;
  }
  // For the SDK only.
  std::vector<torch::optim::Optimizer*> optimizers() override {
    std::vector<torch::optim::Optimizer*> all;
    std::apply([&](auto&... optimizer) { (all.push_back(optimizer.get()), ...); }, optimizers_);
    return all;
  }
  // For the SDK only.
  std::vector<trainable::AnyScheduler> schedulers() override {
    std::vector<trainable::AnyScheduler> all;
    std::apply([&](auto&... scheduler) { (all.emplace_back(scheduler.get()), ...); }, schedulers_);
    return all;
  }
  // Whether validation is possible.
  bool validates() const override { return kHasValidation || kValidatesByDefault; }

 private:
  struct Loaders {
    TrainLoader train;
    ValidationLoader validation;
  };

  static constexpr bool kHasValidation =
      !std::same_as<decltype(C::validation_function), trainable::None>;
  static constexpr bool kValidatesByDefault = trainable::ValidatesByDefault<C, ValidationLoader>;
  static constexpr bool kHasOneModel =
      std::tuple_size_v<typename trainable::CreatedTypes<C>::Models> == 1;

  template <typename D>
  Loaders MakeLoaders(D data) {
    const auto loader = [this]<typename Dataset>(Dataset dataset, bool shuffle) {
      return context().PrepareDataLoader(std::move(dataset),
                                         {.batch_size = options().batch_size,
                                          .shuffle = shuffle && !trainable::Stream<Dataset>,
                                          .threads = options().data_threads});
    };
    if constexpr (std::same_as<ValidationLoader, trainable::None>) {
      return {loader(std::move(data), true), {}};
    } else {
      return {loader(std::move(data.train), true), loader(std::move(data.validation), false)};
    }
  }

  // Returns loss and output.
  template <typename M, typename Batch>
  std::pair<at::Tensor, at::Tensor> Forward(M& model, Batch& batch) {
    const Autocast autocast(context().device(),
                            options().use_fp16 ? c10::ScalarType::Half : c10::ScalarType::BFloat16,
                            options().use_fp16 || options().use_bf16);
    at::Tensor output;
    if constexpr (requires { model.forward(batch.data); }) {
      output = model.forward(batch.data);
    } else {
      output = model(batch.data);
    }
    at::Tensor loss = this->loss()(output, batch.target);
    trainable::CheckLoss(loss);
    return {std::move(loss), std::move(output)};
  }

  void Train() override {
    if constexpr (!std::same_as<decltype(C::train_function), trainable::None>) {
      creators_.train_function(*this);
    } else {
      static_assert(kHasOneModel, "several models need a train_function");
      static_assert(!std::same_as<decltype(C::loss), trainable::None>,
                    "the default loop needs a loss creator; or give a train_function");
      static_assert(trainable::HasDataAndTarget<typename TrainLoader::Batch>,
                    "the default loop needs batches of one data and one target tensor, as of "
                    "dataset.map(torch::data::transforms::Stack<>()); or give a train_function");
      model().train();
      for (auto& batch : batches()) TrainBatch(batch);
    }
  }
  void Validate() override {
    if constexpr (kHasValidation) {
      creators_.validation_function(*this);
    } else if constexpr (kValidatesByDefault) {
      model().eval();
      for (auto& batch : validation_batches()) ValidateBatch(batch);
    } else {
      trainable::ThrowCannotValidate();
    }
  }
  double StepCommunicationSeconds() const override {
    return std::apply(
        [](const auto&... model) { return (0.0 + ... + model.sync_times().communication); },
        prepared_);
  }

  const C creators_;
  typename trainable::CreatedTypes<C>::Models models_;
  typename trainable::CreatedTypes<C>::Prepared prepared_;
  typename trainable::CreatedTypes<C>::Optimizers optimizers_;
  typename trainable::CreatedTypes<C>::Losses losses_;
  typename trainable::CreatedTypes<C>::Schedulers schedulers_;
  Loaders loaders_;
};

}  // namespace attune::inline sdk
