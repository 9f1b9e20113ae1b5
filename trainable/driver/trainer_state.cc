#include "trainable/driver/trainer_state.h"

#include <torch/types.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>

#include "attune/error.h"
#include "attune/torch_trainer.h"
#include "trainable/checkpoints/files.h"
#include "trainable/checkpoints/mapped_file.h"
#include "trainable/checkpoints/names.h"
#include "trainable/checkpoints/safetensors.h"
#include "trainable/checkpoints/state_dict.h"
#include "trainable/checkpoints/unfinished.h"

namespace attune::inline sdk {
namespace trainable {
namespace {

constexpr const char* kTrainerPart = "trainer";

std::map<std::string, TensorMap> PartsOf(const TensorMap& state) {
  std::map<std::string, TensorMap> parts;
  for (const auto& [name, tensor] : state) {
    const std::size_t slash = name.find('/');
    if (slash == std::string::npos) {
      throw Error("state_dict: \"" + name + "\" has no prefix, as in \"model/" + name + "\"");
    }
    parts[name.substr(0, slash)].emplace(name.substr(slash + 1), tensor);
  }
  return parts;
}

}  // namespace

std::string NumberedPart(const std::string& part, std::size_t index) {
  return index == 0 ? part : part + "-" + std::to_string(index);
}

TensorMap PartOf(const TensorMap& state, const std::string& part) {
  TensorMap tensors;
  const std::string prefix = part + "/";
  for (auto at = state.lower_bound(prefix); at != state.end() && at->first.starts_with(prefix);
       ++at) {
    tensors.emplace(at->first.substr(prefix.size()), at->second);
  }
  return tensors;
}

UniqueFd ToMemory(const TensorMap& state) {
  UniqueFd file = MemoryFile();
  WriteSafetensors(NewFile("a copy of the state in memory", DuplicateOf(file)), state);
  return file;
}

TensorMap FromMemory(const UniqueFd& file) {
  const MappedFile mapped(PathOf(file));
  TensorMap state = ViewSafetensors(mapped.bytes(), "a copy of the state in memory");
  for (auto& [name, tensor] : state) tensor = tensor.clone();
  return state;
}

void WriteState(const TensorMap& state, StateWriter& checkpoint) {
  for (const auto& [part, tensors] : PartsOf(state)) checkpoint.Write(part, tensors);
}

TensorMap ReadState(const CheckpointReader& checkpoint) {
  TensorMap state;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint.folder())) {
    if (entry.path().extension() != kTensorEnding) continue;
    const std::string part = entry.path().stem();
    for (const auto& [name, tensor] : checkpoint.ReadTensors(part)) {
      state.emplace(part + "/" + name, tensor);
    }
  }
  if (!checkpoint.Has(kTrainerPart + std::string(kTensorEnding))) {
    throw Error(checkpoint.folder().string() +
                ": is not a checkpoint of a TorchTrainer, because it has no trainer.safetensors");
  }
  return state;
}

CheckpointInfo SaveTrainer(const TensorMap& state, const Config& config,
                           const std::filesystem::path& folder) {
  CheckpointWriter writer(folder, state.at("trainer/epoch").item<std::int64_t>(),
                          NextAttempt(folder), /*world_size=*/1);
  WriteState(state, writer);
  writer.Write(kTrialConfig, config);
  return writer.Commit();
}

TensorMap ReadTrainer(const std::filesystem::path& folder) {
  return ReadState(CheckpointReader(folder));
}

void LoadModel(torch::nn::Module& module, const TensorMap& state, std::size_t index) {
  const std::string part = NumberedPart("model", index);
  LoadState(module, PartOf(state, part), "state_dict: " + part);
}

}  // namespace trainable
}  // namespace attune::inline sdk
