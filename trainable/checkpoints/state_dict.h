#pragma once

#include <string>

#include "attune/checkpoint.h"

// Modules and optimizers as named tensors, and back.
namespace attune::trainable {

// Parameters and buffers by their qualified names ("conv1.weight", "bn1.running_mean"). The
// tensors share memory with the module's.
TensorMap StateOf(const torch::nn::Module& module);

// Copies `state` into the module in place. Throws attune::Error, its message beginning with
// `where`, unless names, shapes and types are exactly the module's.
void LoadState(torch::nn::Module& module, const TensorMap& state, const std::string& where);

// State per parameter, by its place among the optimizer's parameters: "3.exp_avg", "3.step".
// Parameters that have not been stepped yet have none.
TensorMap StateOf(const torch::optim::Optimizer& optimizer);

// Replaces the optimizer's state. Throws as above unless the state belongs to this kind of
// optimizer over parameters of these shapes.
void LoadState(torch::optim::Optimizer& optimizer, const TensorMap& state,
               const std::string& where);

}  // namespace attune::trainable
