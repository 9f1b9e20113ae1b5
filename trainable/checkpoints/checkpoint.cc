#include "attune/checkpoint.h"

#include <stdlib.h>
#include <torch/types.h>

#include <charconv>
#include <cstdio>
#include <system_error>
#include <utility>

#include "attune/error.h"
#include "trainable/base/sockets.h"
#include "trainable/checkpoints/manifest.h"
#include "trainable/checkpoints/mapped_file.h"
#include "trainable/checkpoints/safetensors.h"
#include "trainable/checkpoints/state_dict.h"
#include "trainable/checkpoints/unfinished.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfigFile = "config.json";

// Of the folder that a checkpoint is written into, before the attempt's number and a random end.
constexpr std::string_view kHiddenPrefix = ".attempt-";

std::string TensorFile(std::string_view name) { return std::string(name) + ".safetensors"; }

}  // namespace

CheckpointWriter::CheckpointWriter(fs::path checkpoint_dir, std::int64_t step, int attempt,
                                   int world_size)
    : checkpoint_dir_(std::move(checkpoint_dir)),
      step_(step),
      attempt_(attempt),
      world_size_(world_size) {
  std::error_code error;
  fs::create_directories(checkpoint_dir_, error);
  if (error) throw Error(checkpoint_dir_.string() + ": " + error.message());
  std::string name = (checkpoint_dir_ / c10::str(kHiddenPrefix, attempt_, "-XXXXXX")).string();
  if (mkdtemp(name.data()) == nullptr) trainable::ThrowErrno(checkpoint_dir_.string());
  folder_ = name;
}

CheckpointWriter::~CheckpointWriter() {
  if (committed_) return;
  std::error_code ignored;  // a destructor has nobody to tell; the folder stays hidden
  fs::remove_all(folder_, ignored);
}

void CheckpointWriter::Write(std::string_view name, const torch::nn::Module& module) {
  Write(name, trainable::StateOf(module));
}

void CheckpointWriter::Write(std::string_view name, const torch::optim::Optimizer& optimizer) {
  Write(name, trainable::StateOf(optimizer));
}

void CheckpointWriter::Write(std::string_view name, const TensorMap& tensors) {
  trainable::WriteSafetensors(folder_ / TensorFile(name), tensors);
}

void CheckpointWriter::WriteText(std::string_view file, std::string_view contents) {
  trainable::WriteFile(folder_ / file, contents);
}

CheckpointInfo CheckpointWriter::Commit() {
  trainable::Manifest manifest{.step = step_, .world_size = world_size_};
  CheckpointInfo info{.step = step_};
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (!entry.is_regular_file()) {
      throw Error(entry.path().string() + ": a checkpoint holds files, no folders or links");
    }
    trainable::SyncPath(entry.path());
    const auto digest = trainable::DigestFile(entry.path());
    info.bytes += digest.bytes;
    manifest.files[entry.path().filename().string()] = digest;
  }
  const std::string json = ToJson(manifest);
  info.bytes += static_cast<std::int64_t>(json.size());
  info.digest = "sha256:" + trainable::HexSha256(json);
  trainable::WriteFile(folder_ / trainable::kManifestFile, json);
  trainable::SyncPath(folder_ / trainable::kManifestFile);
  fs::permissions(folder_, fs::perms(0755));  // mkdtemp made it private
  trainable::SyncPath(folder_);

  const fs::path target =
      checkpoint_dir_ / ("step-" + std::to_string(step_) + "-attempt-" + std::to_string(attempt_));
  // It refuses a folder that is not empty, and every checkpoint has its manifest. RENAME_NOREPLACE
  // would say so more plainly, but shared file systems do not know it.
  if (std::rename(folder_.c_str(), target.c_str()) != 0) {
    trainable::ThrowErrno("checkpoint " + target.string());
  }
  committed_ = true;
  trainable::SyncPath(checkpoint_dir_);
  folder_ = target;
  info.path = target;
  return info;
}

namespace trainable {

void RemoveUnfinished(const fs::path& checkpoint_dir, int attempt) {
  std::error_code absent;  // a folder that does not exist yet holds nothing
  for (const auto& entry : fs::directory_iterator(checkpoint_dir, absent)) {
    const std::string name = entry.path().filename().string();
    int writer = 0;
    if (!name.starts_with(kHiddenPrefix)) continue;
    const char* digits = name.data() + kHiddenPrefix.size();
    const auto [end, error] = std::from_chars(digits, name.data() + name.size(), writer);
    if (error != std::errc() || *end != '-' || writer >= attempt) continue;
    std::error_code ignored;  // what cannot be removed stays hidden
    fs::remove_all(entry.path(), ignored);
  }
}

}  // namespace trainable

struct CheckpointReader::Manifest : trainable::Manifest {};

CheckpointReader::CheckpointReader(fs::path folder, std::string_view expected_digest)
    : folder_(std::move(folder)) {
  const fs::path file = folder_ / trainable::kManifestFile;
  if (!fs::exists(file)) {
    throw Error(folder_.string() + ": not a checkpoint: it has no manifest.json");
  }
  const std::string json = trainable::ReadFile(file);
  if (!expected_digest.empty() && "sha256:" + trainable::HexSha256(json) != expected_digest) {
    throw Error(file.string() + ": its digest is not " + std::string(expected_digest) +
                "; this is another checkpoint, or it was altered");
  }
  manifest_ = std::make_unique<Manifest>(Manifest{trainable::ParseManifest(json, file.string())});
}

CheckpointReader::~CheckpointReader() = default;
CheckpointReader::CheckpointReader(CheckpointReader&&) noexcept = default;
CheckpointReader& CheckpointReader::operator=(CheckpointReader&&) noexcept = default;

void CheckpointReader::Read(std::string_view name, torch::nn::Module& module) const {
  const std::string where = (folder_ / TensorFile(name)).string();
  const auto file = Open(TensorFile(name));
  trainable::LoadState(module, trainable::ViewSafetensors(file->bytes(), where), where);
}

void CheckpointReader::Read(std::string_view name, torch::optim::Optimizer& optimizer) const {
  const std::string where = (folder_ / TensorFile(name)).string();
  const auto file = Open(TensorFile(name));
  trainable::LoadState(optimizer, trainable::ViewSafetensors(file->bytes(), where), where);
}

TensorMap CheckpointReader::ReadTensors(std::string_view name) const {
  const std::string file = TensorFile(name);
  return trainable::ParseSafetensors(Open(file)->bytes(), (folder_ / file).string());
}

std::string CheckpointReader::ReadText(std::string_view file) const {
  return std::string(Open(file)->bytes());
}

std::unique_ptr<trainable::MappedFile> CheckpointReader::Open(std::string_view file) const {
  const auto listed = manifest_->files.find(std::string(file));
  if (listed == manifest_->files.end()) {
    throw Error(folder_.string() + ": the checkpoint has no file " + std::string(file));
  }
  const fs::path path = folder_ / file;
  auto mapped = std::make_unique<trainable::MappedFile>(path);
  if (static_cast<std::int64_t>(mapped->bytes().size()) != listed->second.bytes) {
    throw Error(path.string() + ": has " + std::to_string(mapped->bytes().size()) +
                " bytes, the manifest says " + std::to_string(listed->second.bytes));
  }
  if (trainable::HexSha256(mapped->bytes()) != listed->second.sha256) {
    throw Error(path.string() + ": its SHA-256 is not the manifest's; the file was altered");
  }
  return mapped;
}

bool CheckpointReader::Has(std::string_view file) const {
  return manifest_->files.contains(std::string(file));
}

std::int64_t CheckpointReader::step() const { return manifest_->step; }
int CheckpointReader::world_size() const { return manifest_->world_size; }
Config CheckpointReader::config() const { return Config::FromJson(ReadText(kConfigFile)); }

}  // namespace attune
