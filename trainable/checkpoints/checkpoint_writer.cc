#include <stdlib.h>
#include <torch/types.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "attune/checkpoint.h"
#include "attune/error.h"
#include "checkpoints/manifest.h"
#include "checkpoints/piece.h"
#include "system/sha256.h"
#include "trainable/base/sockets.h"
#include "trainable/checkpoints/files.h"
#include "trainable/checkpoints/names.h"
#include "trainable/checkpoints/optimizer_state.h"
#include "trainable/checkpoints/safetensors.h"
#include "trainable/checkpoints/scheduler_state.h"
#include "trainable/checkpoints/state_dict.h"
#include "trainable/checkpoints/unfinished.h"

namespace attune::inline sdk {
namespace {

namespace fs = std::filesystem;

// The name prefix of a folder in which a checkpoint is being written. The attempt's number and a
// random suffix follow.
constexpr std::string_view kHiddenPrefix = ".attempt-";

// Creates a folder whose name is `prefix` and a random suffix.
fs::path MakeFolder(const fs::path& prefix) {
  std::string name = prefix.string() + "XXXXXX";
  if (mkdtemp(name.data()) == nullptr) trainable::ThrowErrno(prefix.parent_path().string());
  return name;
}

[[noreturn]] void Refuse(const fs::path& entry) {
  throw Error(
      entry.string() +
      ": is neither a file nor a folder; a checkpoint holds nothing else, so replace a link with "
      "a copy");
}

bool IsFolder(const fs::directory_entry& entry) {
  return entry.is_directory() && !entry.is_symlink();
}

// The name of a file in the manifest of its checkpoint. Throws if a reader would refuse the name.
std::string ManifestName(const fs::path& file, const fs::path& checkpoint) {
  std::string name = file.lexically_relative(checkpoint).generic_string();
  if (const std::string fault = checkpoints::NameFault(name); !fault.empty()) {
    throw Error(file.string() + ": its name in the checkpoint " + fault);
  }
  return name;
}

// The path of a file with this name in the checkpoint. Creates its folder.
fs::path CreatePath(const fs::path& checkpoint, const std::string& file) {
  if (const std::string fault = checkpoints::NameFault(file); !fault.empty()) {
    throw Error("checkpoint: \"" + file + "\" " + fault);
  }
  const fs::path path = checkpoint / file;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) trainable::ThrowSystemError(path.parent_path().string(), error.value());
  return path;
}

}  // namespace

// ---- state ----------------------------------------------------------------------------------

fs::path StateWriter::File(std::string_view name, std::string_view ending) const {
  return CreatePath(folder_, std::string(name) + suffix_ + std::string(ending));
}

void StateWriter::Write(std::string_view name, const torch::nn::Module& module) {
  Write(name, trainable::StateOf(module));
}

void StateWriter::Write(std::string_view name, const torch::optim::Optimizer& optimizer,
                        OptimizerSaveOptions options) {
  Write(name, trainable::StateOf(optimizer, options.hyperparameters));
}

void StateWriter::Write(std::string_view name, const torch::optim::LRScheduler& scheduler) {
  Write(name, trainable::StateOf(scheduler));
}

void StateWriter::Write(std::string_view name,
                        const torch::optim::ReduceLROnPlateauScheduler& scheduler) {
  Write(name, trainable::StateOf(scheduler));
}

void StateWriter::Write(std::string_view name, const at::Generator& generator) {
  Write(name, TensorMap{{"state", generator.get_state()}});
}

void StateWriter::Write(std::string_view name, const TensorMap& tensors) {
  trainable::WriteSafetensors(File(name, trainable::kTensorEnding), tensors);
}

void StateWriter::Write(std::string_view name, const Config& values) {
  trainable::WriteFile(File(name, trainable::kConfigEnding), values.ToJson());
}

void StateWriter::WriteText(std::string_view file, std::string_view contents) {
  trainable::WriteFile(CreatePath(folder_, std::string(file)), contents);
}

// ---- a checkpoint ---------------------------------------------------------------------------

CheckpointWriter::CheckpointWriter(fs::path checkpoint_dir, std::int64_t step, int attempt,
                                   int world_size)
    : checkpoint_dir_(std::move(checkpoint_dir)),
      step_(step),
      time_(step),
      attempt_(attempt),
      world_size_(world_size) {
  std::error_code error;
  fs::create_directories(checkpoint_dir_, error);
  if (error) trainable::ThrowSystemError(checkpoint_dir_.string(), error.value());
  folder_ = MakeFolder(checkpoint_dir_ / c10::str(kHiddenPrefix, attempt_, "-"));
}

CheckpointWriter::~CheckpointWriter() {
  if (committed_) return;
  std::error_code ignored;  // a destructor cannot report an error; the folder stays hidden
  fs::remove_all(folder_, ignored);
}

CheckpointInfo CheckpointWriter::Commit() {
  checkpoints::Manifest manifest{.step = step_, .time = time_, .world_size = world_size_};
  CheckpointInfo info{.step = time_};
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    if (entry.is_symlink() || !(entry.is_regular_file() || entry.is_directory())) {
      Refuse(entry.path());
    }
    trainable::SyncPath(entry.path());
    if (entry.is_directory()) continue;
    const std::uint64_t bytes = entry.file_size();
    info.bytes += static_cast<std::int64_t>(bytes);
    manifest.files[ManifestName(entry.path(), folder_)] = {
        bytes, trainable::OrThrow(Sha256::HexOfFile(entry.path()), "checkpoint")};
  }
  const std::string json = ToJson(manifest);
  info.bytes += static_cast<std::int64_t>(json.size());
  info.digest = checkpoints::DigestOf(json);
  trainable::WriteFile(folder_ / checkpoints::kManifestFile, json);
  trainable::SyncPath(folder_ / checkpoints::kManifestFile);
  fs::permissions(folder_, fs::perms(0755));  // mkdtemp made it private
  trainable::SyncPath(folder_);

  const fs::path target =
      checkpoint_dir_ / ("step-" + std::to_string(time_) + "-attempt-" + std::to_string(attempt_));
  // rename() refuses a folder that is not empty, and every checkpoint has its manifest.
  // RENAME_NOREPLACE would be clearer, but shared file systems do not support it.
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
    std::error_code ignored;  // a folder that cannot be removed stays hidden
    fs::remove_all(entry.path(), ignored);
  }
}

// Returns N if `name` is "step-S-attempt-N" or ".attempt-N", optionally followed by "-" and more;
// otherwise 0.
int AttemptOf(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789";
  if (constexpr std::string_view kStep = "step-"; name.starts_with(kStep)) {
    const std::size_t digits = name.find_first_not_of(kDigits, kStep.size());
    if (digits == kStep.size() || digits == std::string_view::npos) return 0;
    if (name[digits] != '-') return 0;
    name.remove_prefix(digits);
  } else if (!name.starts_with('.')) {
    return 0;
  }
  name.remove_prefix(1);  // the "-" or the "."
  constexpr std::string_view kAttempt = "attempt-";
  if (!name.starts_with(kAttempt)) return 0;
  name.remove_prefix(kAttempt.size());

  int attempt = 0;
  const char* const end_of_name = name.data() + name.size();
  const auto [end, error] = std::from_chars(name.data(), end_of_name, attempt);
  const bool is_number = error == std::errc() && attempt > 0 && attempt < 1'000'000'000;
  return is_number && (end == end_of_name || *end == '-') ? attempt : 0;
}

int NextAttempt(const fs::path& checkpoint_dir) {
  int attempt = 1;
  std::error_code absent;  // a folder that does not exist yet has no attempts
  for (const auto& entry : fs::directory_iterator(checkpoint_dir, absent))
    attempt = std::max(attempt, AttemptOf(entry.path().filename().string()) + 1);
  return attempt;
}

}  // namespace trainable

// ---- shards ---------------------------------------------------------------------------------

ShardWriter::ShardWriter(const fs::path& folder, int rank)
    : StateWriter(folder, trainable::ShardSuffix(rank)) {
  if (fs::is_directory(folder)) return;
  throw Error(folder.string() + ": rank " + std::to_string(rank) +
              " cannot access the folder in which rank 0 writes the checkpoint; shards of several "
              "hosts need a checkpoint folder that all of them share");
}

// ---- files that the program wrote -----------------------------------------------------------

Checkpoint Checkpoint::FromDirectory(fs::path folder) {
  if (!fs::is_directory(folder)) throw Error(folder.string() + ": is not a folder");
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() && !IsFolder(entry)) Refuse(entry.path());
  }
  return Checkpoint(std::move(folder));
}

void StateWriter::Write(const Checkpoint& files) {
  for (const auto& entry : fs::recursive_directory_iterator(files.folder())) {
    if (IsFolder(entry)) continue;
    std::error_code error;
    fs::copy_file(entry.path(), CreatePath(folder_, ManifestName(entry.path(), files.folder())),
                  error);
    if (error)
      trainable::ThrowSystemError(entry.path().string() + ": cannot be copied", error.value());
  }
}

CheckpointDirectory::CheckpointDirectory(std::unique_ptr<CheckpointWriter> writer, bool kept)
    : path_(writer->folder()), writer_(std::move(writer)), kept_(kept) {}

CheckpointDirectory::CheckpointDirectory()
    : path_(MakeFolder(fs::temp_directory_path() / "attune-throwaway-")) {}

CheckpointDirectory::CheckpointDirectory(CheckpointDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      writer_(std::move(other.writer_)),
      kept_(other.kept_) {}

CheckpointDirectory::~CheckpointDirectory() {
  if (kept_ || writer_ != nullptr || path_.empty()) return;  // a writer removes its folder
  std::error_code ignored;                                   // a destructor cannot report an error
  fs::remove_all(path_, ignored);
}

}  // namespace attune::inline sdk
