#pragma once

#include "attune/context.h"
#include "trainable/driver/message.h"

namespace attune::inline sdk::trainable {

// A worker of a TorchTrainer, as Task::serve: creates what it trains with, and does what the driver
// says until the driver is gone. The task's settings are TrainerSettings.
void ServeTrainer(Context& context, MessageSocket& driver, const Task& task);

}  // namespace attune::inline sdk::trainable
