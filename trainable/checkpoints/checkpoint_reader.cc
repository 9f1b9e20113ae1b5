#include <torch/types.h>

#include <utility>

#include "attune/checkpoint.h"
#include "attune/error.h"
#include "checkpoints/manifest.h"
#include "system/sha256.h"
#include "trainable/base/sockets.h"
#include "trainable/checkpoints/files.h"
#include "trainable/checkpoints/mapped_file.h"
#include "trainable/checkpoints/names.h"
#include "trainable/checkpoints/optimizer_state.h"
#include "trainable/checkpoints/safetensors.h"
#include "trainable/checkpoints/scheduler_state.h"
#include "trainable/checkpoints/state_dict.h"

namespace attune::inline sdk {
namespace {

namespace fs = std::filesystem;

std::string_view BytesOf(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

}  // namespace

struct CheckpointReader::Manifest : checkpoints::Manifest {};

// The tensors of a mapped file.
struct CheckpointReader::View {
  std::unique_ptr<trainable::MappedFile> file;
  std::string where;
  TensorMap tensors;

  // Releases the file's memory of a copied tensor, so that it is not in memory twice.
  trainable::CopiedFunction ReleaseCopied() const {
    return [this](const at::Tensor& tensor) { file->Release(BytesOf(tensor)); };
  }
};

CheckpointReader::CheckpointReader(fs::path folder, std::string_view expected_digest)
    : folder_(std::move(folder)) {
  const fs::path file = folder_ / checkpoints::kManifestFile;
  if (!fs::exists(file)) {
    throw Error(folder_.string() + ": not a checkpoint: it has no manifest.json");
  }
  const std::string json = trainable::ReadFile(file);
  manifest_ = std::make_shared<const Manifest>(Manifest{
      trainable::OrThrow(checkpoints::ReadManifest(json, expected_digest), file.string())});
}

std::string CheckpointReader::File(std::string_view name, std::string_view ending) const {
  return std::string(name) + suffix_ + std::string(ending);
}

void CheckpointReader::Read(std::string_view name, torch::nn::Module& module) const {
  const View view = Open(name);
  trainable::LoadState(module, view.tensors, view.where, view.ReleaseCopied());
}

void CheckpointReader::Read(std::string_view name, torch::optim::Optimizer& optimizer) const {
  const View view = Open(name);
  trainable::LoadState(optimizer, view.tensors, view.where, view.ReleaseCopied());
}

void CheckpointReader::Read(std::string_view name, torch::optim::LRScheduler& scheduler) const {
  const View view = Open(name);
  trainable::LoadState(scheduler, view.tensors, view.where);
}

void CheckpointReader::Read(std::string_view name,
                            torch::optim::ReduceLROnPlateauScheduler& scheduler) const {
  const View view = Open(name);
  trainable::LoadState(scheduler, view.tensors, view.where);
}

void CheckpointReader::Read(std::string_view name, at::Generator& generator) const {
  const View view = Open(name);
  const auto state = view.tensors.find("state");
  if (state == view.tensors.end()) throw Error(view.where + ": is not the state of a generator");
  generator.set_state(state->second.clone());
}

TensorMap CheckpointReader::ReadTensors(std::string_view name) const {
  const View view = Open(name);
  TensorMap tensors;
  for (const auto& [key, tensor] : view.tensors) {
    tensors.emplace(key, tensor.clone());
    view.file->Release(BytesOf(tensor));
  }
  return tensors;
}

Config CheckpointReader::ReadConfig(std::string_view name) const {
  return Config::FromJson(ReadText(File(name, trainable::kConfigEnding)));
}

std::string CheckpointReader::ReadText(std::string_view file) const {
  return std::string(OpenFile(std::string(file))->bytes());
}

std::unique_ptr<trainable::MappedFile> CheckpointReader::OpenFile(const std::string& file) const {
  const auto listed = manifest_->files.find(file);
  if (listed == manifest_->files.end()) {
    throw Error(folder_.string() + ": the checkpoint has no file " + file);
  }
  const fs::path path = folder_ / file;
  auto mapped = std::make_unique<trainable::MappedFile>(path);
  if (mapped->bytes().size() != listed->second.bytes) {
    throw Error(path.string() + ": has " + std::to_string(mapped->bytes().size()) +
                " bytes, the manifest says " + std::to_string(listed->second.bytes));
  }
  if (mapped->HexSha256() != listed->second.sha256) {
    throw Error(path.string() + ": its SHA-256 is not the manifest's; the file was altered");
  }
  return mapped;
}

CheckpointReader::View CheckpointReader::Open(std::string_view name) const {
  const std::string file = File(name, trainable::kTensorEnding);
  View view{.file = OpenFile(file), .where = (folder_ / file).string()};
  view.tensors = trainable::ViewSafetensors(view.file->bytes(), view.where);
  return view;
}

CheckpointReader CheckpointReader::Shard(int rank) const {
  if (rank < 0 || rank >= world_size()) {
    throw Error(folder_.string() + ": was written by " + std::to_string(world_size()) +
                " ranks, and has no shard of rank " + std::to_string(rank));
  }
  CheckpointReader shard = *this;
  shard.suffix_ = trainable::ShardSuffix(rank);
  return shard;
}

const fs::path& CheckpointReader::AsDirectory() const {
  for (const auto& [file, digest] : manifest_->files) OpenFile(file);
  return folder_;
}

bool CheckpointReader::Has(std::string_view file) const {
  return manifest_->files.contains(std::string(file));
}

std::int64_t CheckpointReader::step() const { return manifest_->step; }
std::int64_t CheckpointReader::time() const { return manifest_->time; }
int CheckpointReader::world_size() const { return manifest_->world_size; }

Config CheckpointReader::config() const {
  const std::string file = c10::str(trainable::kTrialConfig, trainable::kConfigEnding);
  return Has(file) ? Config::FromJson(ReadText(file)) : Config();
}

}  // namespace attune::inline sdk
