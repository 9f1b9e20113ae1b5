#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "attune/config.h"

namespace at {
class Tensor;
struct Generator;
}  // namespace at
namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
class LRScheduler;
class ReduceLROnPlateauScheduler;
}  // namespace torch::optim

namespace attune::inline sdk {

class Checkpoint;

namespace trainable {
class MappedFile;
}

// Tensors by name.
using TensorMap = std::map<std::string, at::Tensor>;

// Types that return their state as tensors and restore it from them: DataLoader,
// DistributedSampler, GradScaler, or a type of the program.
template <typename T>
concept Stateful = requires(T& object, const T& saved, const TensorMap& state) {
  { saved.state_dict() } -> std::convertible_to<TensorMap>;
  object.load_state_dict(state);
};

// A committed checkpoint.
struct CheckpointInfo {
  // Context::time() when the checkpoint was saved.
  std::int64_t step = 0;
  std::filesystem::path path;  // its folder
  std::string digest;          // "sha256:" and 64 hex digits of the manifest
  std::int64_t bytes = 0;      // sum of all file sizes, including the manifest
};

// Options of StateWriter::Write() for an optimizer.
struct OptimizerSaveOptions {
  // Whether to save the hyperparameters of the optimizer's parameter groups too: learning rates,
  // momenta, weight decays and so on. Reading then restores them. Without this, the optimizer keeps
  // the hyperparameters of the resuming trial's configuration. Population-based training may have
  // changed that configuration.
  bool hyperparameters = false;
};

// Writes state into the files of a checkpoint.
//
// `name` is a file name without its extension: "model" becomes model.safetensors. It may contain a
// folder, as in "nets/model"; the folder is created. Tensors are copied to the CPU one at a time.
// Every call throws attune::Error if writing fails, if the file has already been written, or if the
// name leads out of the checkpoint.
class StateWriter {
 public:
  // Writes parameters and buffers under the names that the module gives them. They are the same
  // names as in Python's state_dict().
  void Write(std::string_view name, const torch::nn::Module& module);

  // Writes the state of SGD, Adam, AdamW, RMSprop, Adagrad or LBFGS: momenta and step counts.
  void Write(std::string_view name, const torch::optim::Optimizer& optimizer,
             OptimizerSaveOptions options = {});

  // Writes the position of a learning-rate schedule. The current rates belong to the optimizer:
  // save it with `hyperparameters` as well.
  void Write(std::string_view name, const torch::optim::LRScheduler& scheduler);
  void Write(std::string_view name, const torch::optim::ReduceLROnPlateauScheduler& scheduler);

  // Writes the state of a random number generator. LibTorch's own generators need no saving:
  // Context::SeedStep() seeds them again at each step.
  void Write(std::string_view name, const at::Generator& generator);

  // Writes any tensors.
  void Write(std::string_view name, const TensorMap& tensors);

  // Writes the result of the object's state_dict().
  template <Stateful T>
  void Write(std::string_view name, const T& object) {
    Write(name, object.state_dict());
  }

  // Writes a few numbers and texts as JSON: "progress" becomes progress.json.
  void Write(std::string_view name, const Config& values);

  // Writes any other file; `file` is its name with the extension.
  void WriteText(std::string_view file, std::string_view contents);

  // Copies the files of a checkpoint that the program created itself.
  void Write(const Checkpoint& files);

  // The folder in which a program may create more files and subfolders. Links are refused.
  const std::filesystem::path& folder() const { return folder_; }

 protected:
  // `suffix` is inserted between file names and their extensions.
  explicit StateWriter(std::filesystem::path folder = {}, std::string suffix = {})
      : folder_(std::move(folder)), suffix_(std::move(suffix)) {}
  ~StateWriter() = default;

  std::filesystem::path folder_;  // where files are written

 private:
  std::filesystem::path File(std::string_view name, std::string_view ending) const;

  std::string suffix_;
};

// Writes one checkpoint. Its folder appears under its final name complete, synced and hashed, or
// not at all (docs/reference/worker-channel.md). Files are first written into a hidden folder. A
// writer that is destroyed without Commit() removes that folder.
class CheckpointWriter : public StateWriter {
 public:
  // The SDK creates it for Save(). Creates the folder of this step and attempt in `checkpoint_dir`.
  CheckpointWriter(std::filesystem::path checkpoint_dir, std::int64_t step, int attempt,
                   int world_size);
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // The trial's step after which the checkpoint is saved.
  std::int64_t step() const { return step_; }

  // For the SDK only. Context::time(), if it differs from the step.
  void set_time(std::int64_t time) { time_ = time; }

  // If true, training continues while the checkpoint is made durable and hashed, and the report is
  // sent afterwards. If false, Report() returns only after both.
  void set_background(bool background) { background_ = background; }
  bool background() const { return background_; }

  // Hashes and syncs all files, writes the manifest, and gives the folder its final name. The SDK
  // calls this after Save().
  CheckpointInfo Commit();

 private:
  std::filesystem::path checkpoint_dir_;
  std::int64_t step_;
  std::int64_t time_;
  int attempt_;
  int world_size_;
  bool background_ = true;
  bool committed_ = false;
};

// Writes the state that only one rank holds, next to the files that rank 0 writes for all. File
// names contain the rank, as in optimizer.rank-2.safetensors.
class ShardWriter : public StateWriter {
 public:
  // `folder` is the folder of rank 0's CheckpointWriter.
  ShardWriter(const std::filesystem::path& folder, int rank);
};

// Reads a checkpoint. Each file is checked against the manifest before any of it is used. A
// missing, shortened or altered file throws attune::Error with its name. A state that does not fit
// its target throws too, names the first difference, and leaves the target unchanged.
class CheckpointReader {
 public:
  // `expected_digest`, if not empty, must equal the hash of the manifest.
  explicit CheckpointReader(std::filesystem::path folder, std::string_view expected_digest = {});

  // Copies into the module's parameters and buffers in place, on their device. Names, shapes and
  // types must match exactly.
  void Read(std::string_view name, torch::nn::Module& module) const;

  // The optimizer must have been built over the same parameters in the same order and groups.
  void Read(std::string_view name, torch::optim::Optimizer& optimizer) const;

  // Restores the position of the schedule. The learning rates are restored with the optimizer.
  void Read(std::string_view name, torch::optim::LRScheduler& scheduler) const;
  void Read(std::string_view name, torch::optim::ReduceLROnPlateauScheduler& scheduler) const;

  // The generator continues the random sequence of the saved one.
  void Read(std::string_view name, at::Generator& generator) const;

  // Calls the object's load_state_dict().
  template <Stateful T>
  void Read(std::string_view name, T& object) const {
    object.load_state_dict(ReadTensors(name));
  }

  // Return what the corresponding Write() call wrote. ReadText() takes the file name with its
  // extension.
  TensorMap ReadTensors(std::string_view name) const;
  Config ReadConfig(std::string_view name) const;
  std::string ReadText(std::string_view file) const;

  // Reads the shard that `rank` wrote. Throws attune::Error unless 0 <= rank < world_size().
  CheckpointReader Shard(int rank) const;

  // Whether the checkpoint has this file; the name includes the extension, as in "vocabulary.txt"
  // or "nets/model.safetensors".
  bool Has(std::string_view file) const;

  // The trial's step when it was saved.
  std::int64_t step() const;
  // The number of ranks that wrote the checkpoint.
  int world_size() const;
  // Context::time() when it was saved.
  std::int64_t time() const;
  // The folder of the checkpoint.
  const std::filesystem::path& folder() const { return folder_; }

  // The folder, after checking every file in it. It is for programs that read files themselves.
  const std::filesystem::path& AsDirectory() const;

  // The configuration of the trial that wrote it. The SDK adds it to every checkpoint; it is empty
  // if another program wrote the checkpoint.
  Config config() const;

 private:
  struct Manifest;
  struct View;
  std::string File(std::string_view name, std::string_view ending) const;
  View Open(std::string_view name) const;
  std::unique_ptr<trainable::MappedFile> OpenFile(const std::string& file) const;  // checked

  std::filesystem::path folder_;
  std::string suffix_;  // inserted between file names and their extensions
  std::shared_ptr<const Manifest> manifest_;
};

// A checkpoint of files that the program wrote itself, for example with torch::save. It is passed
// to Context::Report().
class Checkpoint {
 public:
  // All files of a folder and its subfolders. Report() copies them; the originals stay the
  // caller's. Throws attune::Error if the folder does not exist, or contains anything but files and
  // folders.
  static Checkpoint FromDirectory(std::filesystem::path folder);

  // The folder that was passed to FromDirectory().
  const std::filesystem::path& folder() const { return folder_; }

 private:
  explicit Checkpoint(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::filesystem::path folder_;
};

// A folder for the files of the next report's checkpoint, for programs that write them on every
// rank. Rank 0 passes its folder to Report(), which does not copy it. The folder of any other rank
// is removed at the end of the scope, as is the folder of rank 0 if it is not reported.
//
//   attune::CheckpointDirectory directory = context.PrepareCheckpointDirectory();
//   torch::save(model, directory.path() / "model.pt");
//   going_on = context.Report(metrics, std::move(directory));
class CheckpointDirectory {
 public:
  // Uses the folder of a writer. Unless `kept`, it is removed with this object.
  CheckpointDirectory(std::unique_ptr<CheckpointWriter> writer, bool kept);

  // Creates a folder for temporary files that is removed with this object.
  CheckpointDirectory();

  ~CheckpointDirectory();
  CheckpointDirectory(CheckpointDirectory&&) noexcept;
  CheckpointDirectory& operator=(CheckpointDirectory&&) = delete;

  // REQUIRES: not moved from.
  const std::filesystem::path& path() const { return path_; }

  // For the SDK only. Null for a folder that is not kept.
  std::unique_ptr<CheckpointWriter> TakeWriter() { return kept_ ? std::move(writer_) : nullptr; }

 private:
  std::filesystem::path path_;
  std::unique_ptr<CheckpointWriter> writer_;  // null if path_ is a temporary folder
  bool kept_ = false;
};

}  // namespace attune::inline sdk
