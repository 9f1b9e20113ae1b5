#pragma once

#include <functional>
#include <string>

#include "attune/checkpoint.h"

// Conversion of modules to named tensors, and back.
namespace attune::inline sdk::trainable {

// Called with each saved tensor after it has been copied.
using CopiedFunction = std::function<void(const at::Tensor&)>;

// Parameters and buffers by their qualified names ("conv1.weight", "bn1.running_mean"). The
// tensors share memory with the module's.
TensorMap StateOf(const torch::nn::Module& module);

// Copies `state` into the module in place. Throws attune::Error, with a message that begins with
// `where`, unless names, shapes and types are exactly those of the module.
void LoadState(torch::nn::Module& module, const TensorMap& state, const std::string& where,
               const CopiedFunction& copied = {});

// "[2, 3] of Float", for messages.
std::string Shape(const at::Tensor& tensor);

}  // namespace attune::inline sdk::trainable
