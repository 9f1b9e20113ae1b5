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

// Executes one command on a visitor.
struct CommandVisitor {
  Training& training;
  const Message& message;
  std::uint64_t number;
  bool first;  // whether this is worker 0 of the gang
  Answer answer;

  void operator()(const DoNothing&) {}
  void operator()(const DoTrain& train) { answer.pass = training.RunEpoch(train.options); }
  void operator()(const DoValidate& validate) {
    training.SeedCommand(number, /*same_on_all_workers=*/false);
    answer.pass = training.RunValidation(validate.options);
  }
  void operator()(const DoStepSchedulers& step) {
    training.StepSchedulers(step.metric ? &*step.metric : nullptr);
  }
  void operator()(const DoLoad&) { training.LoadState(FromMemory(message.file)); }
  void operator()(const DoApply& apply) {
    training.SeedCommand(number, /*same_on_all_workers=*/true);
    Packer result;
    apply.apply(training, apply.function, result);
    answer.applied = result.Finish();
  }
  void operator()(const DoSendState&) {
    if (first) answer.applied.file = ToMemory(training.State());
  }
};

// Adds the reported metrics of a pass: means over all samples of all ranks.
void AddMeans(Context& context, const PassResult& pass, Metrics& metrics) {
  const PassResult all{.sums = context.ReduceSum(pass.sums),
                       .weights = context.ReduceSum(pass.weights)};
  metrics.merge(all.Means());
}

}  // namespace

void ServeTrainer(Context& context, MessageSocket& driver, const Task& task) {
  const TrainerSettings set = ReadSettings(task.settings);
  context.config().Has("batch_size");  // mark it as read; the driver uses it
  const std::unique_ptr<Training> training = set.factory(context, set.creators, set.options);
  training->Begin(set.batch_factor);
  while (const auto message = driver.Receive()) {
    const Command command = ReadCommand(message->bytes);
    context.Heartbeat(std::chrono::milliseconds(0));
    CommandVisitor visitor{*training, *message, command.number, context.rank() == 0, {}};
    std::visit(visitor, command.what);
    visitor.answer.epoch = training->epoch();
    if (!driver.Send({ToBytes(visitor.answer), std::move(visitor.answer.applied.file)})) return;
  }
}

double ResizeBatch(TorchTrainerOptions& options, int workers) {
  if (options.resize_rule != ResizeRule::kScaleWithWorkers) return 1;
  const auto full = static_cast<double>(options.batch_size);
  options.batch_size =
      std::max<std::int64_t>(workers, options.batch_size * workers / options.num_workers);
  return static_cast<double>(options.batch_size) / full;
}

void RunTrial(Context& context, Training& training, double batch_factor) {
  if (training.options().initialization_hook) {
    throw Error(
        "AsTrainable: initialization_hook is not supported here; pass it to "
        "attune::Main() in MainOptions");
  }
  training.Begin(batch_factor);
  if (const CheckpointReader* checkpoint = context.checkpoint()) {
    // A cloned trial resumes with a different configuration, whose hyperparameters must take
    // effect.
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
