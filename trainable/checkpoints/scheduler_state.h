#pragma once

#include <string>

#include "attune/checkpoint.h"

// How far LibTorch's learning-rate schedulers have come, as named tensors, and back. The learning
// rates are not theirs, but hyperparameters of their optimizers.
namespace attune::inline sdk::trainable {

TensorMap StateOf(const torch::optim::LRScheduler& scheduler);
TensorMap StateOf(const torch::optim::ReduceLROnPlateauScheduler& scheduler);

// Throw attune::Error, its message beginning with `where`, unless the state is that of such a
// scheduler.
void LoadState(torch::optim::LRScheduler& scheduler, const TensorMap& state,
               const std::string& where);
void LoadState(torch::optim::ReduceLROnPlateauScheduler& scheduler, const TensorMap& state,
               const std::string& where);

}  // namespace attune::inline sdk::trainable
