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

// What gives its state as tensors and takes it back: DataLoader, DistributedSampler, GradScaler, or
// a type of the program's own.
template <typename T>
concept Stateful = requires(T& object, const T& saved, const TensorMap& state) {
  { saved.state_dict() } -> std::convertible_to<TensorMap>;
  object.load_state_dict(state);
};

// A checkpoint that was committed.
struct CheckpointInfo {
  // The trial's time when it was saved (Context::time()), and the folder.
  std::int64_t step = 0;
  std::filesystem::path path;
  std::string digest;      // "sha256:" and 64 hex digits of the manifest
  std::int64_t bytes = 0;  // of all files, the manifest's included
};

// Of StateWriter::Write() for an optimizer.
struct OptimizerSaveOptions {
  // Also learning rates, momenta, weight decays, … of the optimizer's groups of parameters, which
  // reading then brings back. Without, they are those of the configuration that goes on from the
  // checkpoint, which may be another one, as in population-based training.
  bool hyperparameters = false;
};

// Writes state into files of a checkpoint.
//
// `name` is a file name without its ending: "model" becomes model.safetensors. It may lie in a
// folder: "nets/model", which is made. Tensors are copied to the CPU one at a time. Every call
// throws attune::Error when the disk refuses, for a file that has been written already, and for a
// name that leads out of the checkpoint.
class StateWriter {
 public:
  // Parameters and buffers, by the module's own names, which are those of Python's state_dict().
  void Write(std::string_view name, const torch::nn::Module& module);

  // The state of SGD, Adam, AdamW, RMSprop, Adagrad or LBFGS: momenta and step counts.
  void Write(std::string_view name, const torch::optim::Optimizer& optimizer,
             OptimizerSaveOptions options = {});

  // How far a schedule of learning rates has come. The rates that it has come to are its
  // optimizer's: save that with its hyperparameters.
  void Write(std::string_view name, const torch::optim::LRScheduler& scheduler);
  void Write(std::string_view name, const torch::optim::ReduceLROnPlateauScheduler& scheduler);

  // The state of a generator of random numbers. LibTorch's own generators need not be saved: they
  // are seeded anew at each step, see Context::SeedStep().
  void Write(std::string_view name, const at::Generator& generator);

  // Any tensors.
  void Write(std::string_view name, const TensorMap& tensors);

  // What its state_dict() gives.
  template <Stateful T>
  void Write(std::string_view name, const T& object) {
    Write(name, object.state_dict());
  }

  // A few numbers and words, as JSON: "progress" becomes progress.json.
  void Write(std::string_view name, const Config& values);

  // Any other file; `file` is its whole name.
  void WriteText(std::string_view file, std::string_view contents);

  // Copies the files of a checkpoint that the program has made by itself.
  void Write(const Checkpoint& files);

  // Where a program may put further files, also in folders. Links are refused.
  const std::filesystem::path& folder() const { return folder_; }

 protected:
  // `suffix` goes between the names of files and their endings.
  explicit StateWriter(std::filesystem::path folder = {}, std::string suffix = {})
      : folder_(std::move(folder)), suffix_(std::move(suffix)) {}
  ~StateWriter() = default;

  std::filesystem::path folder_;  // where files are written

 private:
  std::filesystem::path File(std::string_view name, std::string_view ending) const;

  std::string suffix_;
};

// Writes one checkpoint: a folder that appears under its final name complete, synced and hashed,
// or not at all (docs/reference/worker-channel.md). Files are written into a hidden folder first; a
// writer that is destroyed without Commit() removes it.
class CheckpointWriter : public StateWriter {
 public:
  // Made by the SDK for Save(); begins the folder of that step and attempt in `checkpoint_dir`.
  CheckpointWriter(std::filesystem::path checkpoint_dir, std::int64_t step, int attempt,
                   int world_size);
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // The trial's, after which it is saved.
  std::int64_t step() const { return step_; }

  // Said by the SDK: Context::time() of that step, where it is another number.
  void set_time(std::int64_t time) { time_ = time; }

  // Training goes on while a checkpoint that Save() has written is made durable and hashed, and its
  // report is sent after that. With false, Report() returns only then.
  void set_background(bool background) { background_ = background; }
  bool background() const { return background_; }

  // Hashes and syncs all files, writes the manifest, and gives the folder its final name. The
  // SDK calls this after Save().
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

// Writes what one rank alone holds, beside what rank 0 writes for all: its files carry the rank in
// their names, as optimizer.rank-2.safetensors.
class ShardWriter : public StateWriter {
 public:
  // `folder` is that of rank 0's CheckpointWriter.
  ShardWriter(const std::filesystem::path& folder, int rank);
};

// Reads a checkpoint. Each file is checked against the manifest before anything in it is used; a
// missing, shortened or altered file throws attune::Error naming it. What does not fit what it is
// read into throws too, naming the first thing that differs, and leaves it as it was.
class CheckpointReader {
 public:
  // `expected_digest`, when not empty, is what the manifest must hash to.
  explicit CheckpointReader(std::filesystem::path folder, std::string_view expected_digest = {});

  // Copies into the module's parameters and buffers in place, on their device. Names, shapes and
  // types must agree exactly.
  void Read(std::string_view name, torch::nn::Module& module) const;

  // The optimizer must have been built over the same parameters in the same order and groups.
  void Read(std::string_view name, torch::optim::Optimizer& optimizer) const;

  // Where the schedule stands; the learning rates come with the optimizer.
  void Read(std::string_view name, torch::optim::LRScheduler& scheduler) const;
  void Read(std::string_view name, torch::optim::ReduceLROnPlateauScheduler& scheduler) const;

  // The generator draws on as the saved one would have.
  void Read(std::string_view name, at::Generator& generator) const;

  // By its load_state_dict().
  template <Stateful T>
  void Read(std::string_view name, T& object) const {
    object.load_state_dict(ReadTensors(name));
  }

  // What was written as such; ReadText() takes the whole name of a file.
  TensorMap ReadTensors(std::string_view name) const;
  Config ReadConfig(std::string_view name) const;
  std::string ReadText(std::string_view file) const;

  // What the rank of the gang that wrote it has written as its shard. Throws attune::Error unless
  // 0 <= rank < world_size().
  CheckpointReader Shard(int rank) const;

  // Whether there is a file of that whole name, as "vocabulary.txt" or "nets/model.safetensors".
  bool Has(std::string_view file) const;

  // The trial's step, the number of ranks that wrote it, and where it lies.
  std::int64_t step() const;
  int world_size() const;
  // Context::time() when it was saved.
  std::int64_t time() const;
  const std::filesystem::path& folder() const { return folder_; }

  // The folder, with every file in it checked: for programs that read files of their own.
  const std::filesystem::path& AsDirectory() const;

  // The configuration of the trial that wrote it, which the SDK adds to every checkpoint; empty
  // where another program has written it.
  Config config() const;

 private:
  struct Manifest;
  struct View;
  std::string File(std::string_view name, std::string_view ending) const;
  View Open(std::string_view name) const;
  std::unique_ptr<trainable::MappedFile> OpenFile(const std::string& file) const;  // checked

  std::filesystem::path folder_;
  std::string suffix_;  // of names, before their endings
  std::shared_ptr<const Manifest> manifest_;
};

// A checkpoint made of files that a program wrote by itself, with torch::save or a library of its
// own, for Context::Report().
class Checkpoint {
 public:
  // The files of a folder and of the folders in it, which stay the caller's: Report() copies them.
  // Throws attune::Error when there is no such folder, and when it holds anything else.
  static Checkpoint FromDirectory(std::filesystem::path folder);

  // As it was given.
  const std::filesystem::path& folder() const { return folder_; }

 private:
  explicit Checkpoint(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::filesystem::path folder_;
};

// A folder for the files of the coming report's checkpoint, for programs that write them on every
// rank alike. Rank 0's is given to Report(), and not copied; that of any other rank is thrown away
// with the scope, as is rank 0's where it is not reported.
//
//   attune::CheckpointDirectory directory = context.PrepareCheckpointDirectory();
//   torch::save(model, directory.path() / "model.pt");
//   going_on = context.Report(metrics, std::move(directory));
class CheckpointDirectory {
 public:
  // The folder of a writer; a throwaway where it is not kept.
  CheckpointDirectory(std::unique_ptr<CheckpointWriter> writer, bool kept);

  // A throwaway, in the folder for temporary files.
  CheckpointDirectory();

  ~CheckpointDirectory();
  CheckpointDirectory(CheckpointDirectory&&) noexcept;
  CheckpointDirectory& operator=(CheckpointDirectory&&) = delete;

  // REQUIRES: not moved from.
  const std::filesystem::path& path() const { return path_; }

  // For the SDK's own use. Null for a throwaway.
  std::unique_ptr<CheckpointWriter> TakeWriter() { return kept_ ? std::move(writer_) : nullptr; }

 private:
  std::filesystem::path path_;
  std::unique_ptr<CheckpointWriter> writer_;  // null: a folder for temporary files
  bool kept_ = false;
};

}  // namespace attune::inline sdk
