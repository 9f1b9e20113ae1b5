#pragma once

#include <cstddef>
#include <string>

#include "attune/checkpoint.h"
#include "system/unique_fd.h"
#include "trainable/driver/message.h"

// What Training::State() gives, kept: as a file in memory, and as a checkpoint with a file for each
// part, "model/weight" in model.safetensors.
namespace attune::inline sdk::trainable {

// "model", "model-1", "model-2", …
std::string NumberedPart(const std::string& part, std::size_t index);

// Of all tensors those of a part, "model/weight" as "weight".
TensorMap PartOf(const TensorMap& state, const std::string& part);

UniqueFd ToMemory(const TensorMap& state);

// Tensors of their own.
TensorMap FromMemory(const UniqueFd& file);

void WriteState(const TensorMap& state, StateWriter& checkpoint);

// Throws attune::Error when the checkpoint is not that of a trainer.
TensorMap ReadState(const CheckpointReader& checkpoint);

}  // namespace attune::inline sdk::trainable
