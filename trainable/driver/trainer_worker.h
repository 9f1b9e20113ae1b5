#pragma once

#include <string>

#include "attune/context.h"
#include "trainable/driver/link.h"

namespace attune::inline sdk::trainable {

// A worker of a TorchTrainer: creates what it trains with and does what the driver says until that
// is gone. For a Task; `settings` are those of TrainerSettings.
void ServeTrainer(Context& context, Link& driver, const std::string& settings);

}  // namespace attune::inline sdk::trainable
