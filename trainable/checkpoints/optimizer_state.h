#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attune/checkpoint.h"
#include "trainable/checkpoints/state_dict.h"

// Optimizers as named tensors, and back.
namespace attune::inline sdk::trainable {

// Begins the names of a group's hyperparameters.
inline constexpr std::string_view kGroupPrefix = "group.";

// State per parameter, by its place among the optimizer's parameters: "3.exp_avg", "3.step".
// Parameters that have not been stepped yet have none. With `hyperparameters` also those of each
// group of parameters, by its place: "group.0.lr".
TensorMap StateOf(const torch::optim::Optimizer& optimizer, bool hyperparameters = false);

// Replaces the optimizer's state, and its hyperparameters where `state` has them. Throws
// attune::Error, its message beginning with `where`, unless the state belongs to this kind of
// optimizer over parameters of these shapes.
void LoadState(torch::optim::Optimizer& optimizer, const TensorMap& state, const std::string& where,
               const CopiedFunction& copied = {});

}  // namespace attune::inline sdk::trainable
