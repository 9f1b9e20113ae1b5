#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attune/checkpoint.h"
#include "trainable/checkpoints/state_dict.h"

// Conversion of optimizer states to named tensors, and back.
namespace attune::inline sdk::trainable {

// The prefix of names of a group's hyperparameters.
inline constexpr std::string_view kGroupPrefix = "group.";

// The state of each parameter, named by the parameter's index: "3.exp_avg", "3.step". Parameters
// without a step yet have none. With `hyperparameters`, also the hyperparameters of each parameter
// group, named by its index: "group.0.lr".
TensorMap StateOf(const torch::optim::Optimizer& optimizer, bool hyperparameters = false);

// Replaces the optimizer's state, and those hyperparameters that are in `state`. Throws
// attune::Error, with a message that begins with `where`, unless the state belongs to this kind of
// optimizer and to parameters of these shapes.
void LoadState(torch::optim::Optimizer& optimizer, const TensorMap& state, const std::string& where,
               const CopiedFunction& copied = {});

}  // namespace attune::inline sdk::trainable
