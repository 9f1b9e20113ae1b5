#include "trainable/driver/trainer_worker.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>

#include "attune/error.h"
#include "attune/torch_trainer.h"
#include "trainable/driver/trainer_messages.h"
#include "trainable/driver/trainer_state.h"

namespace attune::inline sdk::trainable {
namespace {

struct Worker {
  Training& training;
  const Message& message;
  std::uint64_t number;
  bool first;  // of the gang
  Answer answer;

  void operator()(const DoNothing&) {}
  void operator()(const DoTrain& train) { answer.pass = training.RunEpoch(train.options); }
  void operator()(const DoValidate& validate) {
    training.SeedCommand(number, /*alike=*/false);
    answer.pass = training.RunValidation(validate.options);
  }
  void operator()(const DoStepSchedulers& step) {
    training.StepSchedulers(step.metric ? &*step.metric : nullptr);
  }
  void operator()(const DoLoad&) { training.LoadState(FromMemory(message.file)); }
  void operator()(const DoApply& apply) {
    training.SeedCommand(number, /*alike=*/true);
    Packer result;
    apply.apply(training, apply.function, result);
    answer.applied = result.Finish();
  }
  void operator()(const DoSendState&) {
    if (first) answer.applied.file = ToMemory(training.State());
  }
};

// Adds what is reported of a pass: means over all samples of all ranks.
void AddMeans(Context& context, const PassResult& pass, Metrics& metrics) {
  const PassResult all{.sums = context.ReduceSum(pass.sums),
                       .weights = context.ReduceSum(pass.weights)};
  metrics.merge(all.Means());
}

}  // namespace

void ServeTrainer(Context& context, MessageSocket& driver, const Task& task) {
  const TrainerSettings set = ReadSettings(task.settings);
  context.config().Has("batch_size");  // read by the driver
  const std::unique_ptr<Training> training = set.factory(context, set.creators, set.options);
  training->Begin(set.batch_factor);
  while (const auto message = driver.Receive()) {
    const Command command = ReadCommand(message->bytes);
    context.Heartbeat(std::chrono::milliseconds(0));
    Worker worker{*training, *message, command.number, context.rank() == 0, {}};
    std::visit(worker, command.what);
    worker.answer.epoch = training->epoch();
    if (!driver.Send({ToBytes(worker.answer), std::move(worker.answer.applied.file)})) return;
  }
}

double ResizeBatch(TorchTrainerOptions& options, int workers) {
  if (options.resize_rule != ResizeRule::kScaleWithWorkers) return 1;
  const auto full = static_cast<double>(options.batch_size);
  options.batch_size =
      std::max<std::int64_t>(workers, options.batch_size * workers / options.num_workers);
  return static_cast<double>(options.batch_size) / full;
}

void RunTrials(Context& context, Training& training, double batch_factor) {
  if (training.options().initialization_hook) {
    throw Error(
        "AsTrainable: an initialization_hook runs before training is created: give it to "
        "attune::Main(), as MainOptions");
  }
  training.Begin(batch_factor);
  if (const CheckpointReader* checkpoint = context.checkpoint()) {
    // Another configuration goes on from here where a trial was cloned, and is to be tried.
    training.LoadState(ReadState(*checkpoint), checkpoint->config() == context.config());
  }
  const auto save = [&](CheckpointWriter& checkpoint) { WriteState(training.State(), checkpoint); };
  Metrics metrics;
  do {
    metrics.clear();
    AddMeans(context, training.RunEpoch({}), metrics);
    if (training.validates()) AddMeans(context, training.RunValidation({}), metrics);
    if (training.options().scheduler_step_freq == SchedulerStep::kManual) {
      const auto loss = metrics.find(metrics.contains("val_loss") ? "val_loss" : "train_loss");
      training.StepSchedulers(loss == metrics.end() ? nullptr : &loss->second);
    }
  } while (context.Report(metrics, save));
}

}  // namespace attune::inline sdk::trainable
