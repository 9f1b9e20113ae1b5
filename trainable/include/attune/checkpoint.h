#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "attune/config.h"

namespace at {
class Tensor;
}
namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace attune {

namespace trainable {
class MappedFile;
}

using TensorMap = std::map<std::string, at::Tensor>;

// A checkpoint that was committed.
struct CheckpointInfo {
  std::int64_t step = 0;
  std::filesystem::path path;
  std::string digest;      // "sha256:" and 64 hex digits of the manifest
  std::int64_t bytes = 0;  // of all files, the manifest's included
};

// Writes one checkpoint: a folder that appears under its final name complete, synced and hashed,
// or not at all (docs/worker-channel.md). Files are written into a hidden folder first; a writer
// that is destroyed without Commit() removes it.
//
// `name` below is a file name without its ending: "model" becomes model.safetensors. Tensors are
// copied to the CPU one at a time. Every call throws attune::Error when the disk refuses.
class CheckpointWriter {
 public:
  CheckpointWriter(std::filesystem::path checkpoint_dir, std::int64_t step, int attempt,
                   int world_size);
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Parameters and buffers, by the module's own names.
  void Write(std::string_view name, const torch::nn::Module& module);

  // The state of SGD, Adam, AdamW, RMSprop or Adagrad: momenta and step counts, not the
  // hyperparameters, which belong to the configuration that continues from here.
  void Write(std::string_view name, const torch::optim::Optimizer& optimizer);

  void Write(std::string_view name, const TensorMap& tensors);

  // Any other file; `file` is its whole name.
  void WriteText(std::string_view file, std::string_view contents);

  // Where a program may put further files of its own before Commit(); folders are refused.
  const std::filesystem::path& folder() const { return folder_; }
  std::int64_t step() const { return step_; }

  // Hashes and syncs all files, writes the manifest, and gives the folder its final name. The
  // SDK calls this after Save().
  CheckpointInfo Commit();

 private:
  std::filesystem::path checkpoint_dir_;
  std::int64_t step_;
  int attempt_;
  int world_size_;
  std::filesystem::path folder_;
  bool committed_ = false;
};

// Reads a checkpoint. Each file is checked against the manifest before anything in it is used; a
// missing, shortened or altered file throws attune::Error naming it.
class CheckpointReader {
 public:
  // `expected_digest`, when not empty, is what the manifest must hash to.
  explicit CheckpointReader(std::filesystem::path folder, std::string_view expected_digest = {});
  ~CheckpointReader();
  CheckpointReader(CheckpointReader&&) noexcept;
  CheckpointReader& operator=(CheckpointReader&&) noexcept;

  // Copies into the module's parameters and buffers in place, on their device. Names, shapes and
  // types must agree exactly.
  void Read(std::string_view name, torch::nn::Module& module) const;

  // The optimizer must have been built over the same parameters in the same order.
  void Read(std::string_view name, torch::optim::Optimizer& optimizer) const;

  TensorMap ReadTensors(std::string_view name) const;
  std::string ReadText(std::string_view file) const;

  bool Has(std::string_view file) const;
  std::int64_t step() const;
  int world_size() const;  // of the gang that wrote it
  const std::filesystem::path& folder() const { return folder_; }

  // The configuration of the trial that wrote it; the SDK adds it to every checkpoint.
  Config config() const;

 private:
  struct Manifest;
  std::unique_ptr<trainable::MappedFile> Open(std::string_view file) const;  // checked
  std::filesystem::path folder_;
  std::unique_ptr<Manifest> manifest_;
};

}  // namespace attune
