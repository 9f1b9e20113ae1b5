#include "trainable/driver/trainer_worker.h"

#include <chrono>
#include <memory>
#include <optional>
#include <variant>

#include "attune/error.h"
#include "attune/torch_trainer.h"
#include "trainable/driver/trainer_messages.h"
#include "trainable/driver/trainer_state.h"

namespace attune::trainable {
namespace {

struct Worker {
  Training& training;
  const Message& message;
  std::uint64_t number;
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
    answer.applied = apply.apply(training, apply.function);
  }
  void operator()(const DoSendState&) {}
};

// What of a pass is reported: means over all samples of all ranks.
void AddMeans(Context& context, const PassResult& pass, Metrics& metrics) {
  Metrics sums = context.ReduceSum(pass.sums);
  const Metrics weights = context.ReduceSum({pass.weights.begin(), pass.weights.end()});
  for (auto& [name, sum] : sums) metrics[name] = sum / weights.at(name);
}

}  // namespace

void ServeTrainer(Context& context, Link& driver, const std::string& settings) {
  const TrainerSettings set = ReadSettings(settings);
  context.config().Has("batch_size");  // read by the driver
  const std::unique_ptr<Training> training = set.factory(context, set.creators, set.options);
  training->Begin(set.batch_factor);
  while (const auto message = driver.Receive()) {
    const Command command = ReadCommand(message->bytes);
    context.Heartbeat(std::chrono::milliseconds(0));
    Worker worker{*training, *message, command.number, {}};
    std::visit(worker, command.what);
    worker.answer.epoch = training->epoch();
    Message answer{.bytes = ToBytes(worker.answer), .file = {}};
    if (command.send_state && context.rank() == 0) answer.file = ToMemory(training->State());
    if (!driver.Send(answer)) return;
  }
}

void RunTrials(Context& context, Training& training) {
  if (training.options().initialization_hook) {
    throw Error(
        "AsTrainable: an initialization_hook runs before training is created: give it to "
        "attune::Main(), as MainOptions");
  }
  training.Begin(/*batch_factor=*/1);
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

}  // namespace attune::trainable
