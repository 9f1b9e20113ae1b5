#pragma once

#include "attune/context.h"
#include "trainable/driver/message.h"

namespace attune::inline sdk::trainable {

// Runs a worker of a TorchTrainer, as Task::serve. It calls the creators, and executes commands of
// the driver until the driver is gone. The task's settings are TrainerSettings.
void ServeTrainer(Context& context, MessageSocket& driver, const Task& task);

}  // namespace attune::inline sdk::trainable
