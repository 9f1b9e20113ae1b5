#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "attune/torch_trainer.h"
#include "trainable/driver/message.h"

// What a TorchTrainer and its workers say to each other.
namespace attune::inline sdk::trainable {

// ---- driver → worker

// A task's settings.
struct TrainerSettings {
  TrainingFactory factory = nullptr;
  std::string creators;
  TorchTrainerOptions options;  // but for what only the driver needs, and the configuration
  double batch_factor = 1;      // the batch, as a multiple of what was asked for
};

struct DoNothing {};  // to be answered once everything is created
struct DoTrain {
  TrainOptions options;
};
struct DoValidate {
  TrainOptions options;
};
struct DoStepSchedulers {
  std::optional<double> metric;
};
struct DoLoad {};  // the state that goes along
struct DoApply {
  ApplyFunction apply = nullptr;
  std::string function;
};
struct DoSendState {};  // worker 0 sends a copy of it

struct Command {
  std::variant<DoNothing, DoTrain, DoValidate, DoStepSchedulers, DoLoad, DoApply, DoSendState> what;
  std::uint64_t number = 0;  // of the call that it is done for, from 1
};

// ---- worker → driver

struct Answer {
  PassResult pass;  // to DoTrain and DoValidate
  Message applied;  // to DoApply; its file goes beside the bytes, as DoSendState's does
  std::int64_t epoch = 0;
};

// Reading throws attune::Error.
std::string ToBytes(const TrainerSettings& settings);
std::string ToBytes(const Command& command);
std::string ToBytes(const Answer& answer);
TrainerSettings ReadSettings(std::string_view bytes);
Command ReadCommand(std::string_view bytes);
Answer ReadAnswer(std::string_view bytes);

}  // namespace attune::inline sdk::trainable
