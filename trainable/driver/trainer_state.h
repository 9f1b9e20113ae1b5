#pragma once

#include <cstddef>
#include <string>

#include "attune/checkpoint.h"
#include "system/unique_fd.h"
#include "trainable/driver/message.h"

// Storage of Training::State(): as a file in memory, and as a checkpoint with one file for each
// part, such as "model/weight" in model.safetensors.
namespace attune::inline sdk::trainable {

// "model", "model-1", "model-2", …
std::string NumberedPart(const std::string& part, std::size_t index);

// The tensors of a part, without its prefix: "model/weight" becomes "weight".
TensorMap PartOf(const TensorMap& state, const std::string& part);

UniqueFd ToMemory(const TensorMap& state);

// Returns copies of the tensors.
TensorMap FromMemory(const UniqueFd& file);

void WriteState(const TensorMap& state, StateWriter& checkpoint);

// Throws attune::Error if the checkpoint does not come from a trainer.
TensorMap ReadState(const CheckpointReader& checkpoint);

}  // namespace attune::inline sdk::trainable
