#pragma once

#include <string>

#include "attune/checkpoint.h"

// Conversion of the positions of LibTorch's learning-rate schedulers to named tensors, and back.
// The learning rates are hyperparameters of the optimizers and are not included.
namespace attune::inline sdk::trainable {

TensorMap StateOf(const torch::optim::LRScheduler& scheduler);
TensorMap StateOf(const torch::optim::ReduceLROnPlateauScheduler& scheduler);

// Throw attune::Error, with a message that begins with `where`, unless the state belongs to this
// type of scheduler.
void LoadState(torch::optim::LRScheduler& scheduler, const TensorMap& state,
               const std::string& where);
void LoadState(torch::optim::ReduceLROnPlateauScheduler& scheduler, const TensorMap& state,
               const std::string& where);

}  // namespace attune::inline sdk::trainable
