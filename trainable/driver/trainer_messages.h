#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "attune/torch_trainer.h"
#include "trainable/driver/message.h"

// Messages between a TorchTrainer and its workers.
namespace attune::inline sdk::trainable {

// ---- driver → worker

// The settings of a task.
struct TrainerSettings {
  TrainingFactory factory = nullptr;
  std::string creators;
  TorchTrainerOptions options;  // without the configuration and the options of the driver
  double batch_factor = 1;      // the batch as a multiple of the requested batch
};

struct DoNothing {};  // answered after everything is created
struct DoTrain {
  TrainOptions options;
};
struct DoValidate {
  TrainOptions options;
};
struct DoStepSchedulers {
  std::optional<double> metric;
};
struct DoLoad {};  // loads the state in the message's file
struct DoApply {
  ApplyFunction apply = nullptr;
  std::string function;
};
struct DoSendState {};  // worker 0 sends a copy of the state

struct Command {
  std::variant<DoNothing, DoTrain, DoValidate, DoStepSchedulers, DoLoad, DoApply, DoSendState> what;
  std::uint64_t number = 0;  // number of the driver's call, from 1
};

// ---- worker → driver

struct Answer {
  PassResult pass;  // answer to DoTrain and DoValidate
  Message applied;  // answer to DoApply; its file is sent with the bytes, also for DoSendState
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
