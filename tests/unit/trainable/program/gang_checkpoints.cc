// Ways in which a training function saves, selected by `mode`. GANG_PROGRAM_FSYNC makes the disk
// slow or broken.

#include <attune/attune.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/serialize.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

#include "tests/unit/trainable/program/gang_modes.h"

// Replaces fsync of the C library. It fails if GANG_PROGRAM_FSYNC is "fails" or "full". Otherwise
// it blocks until the pipe with that name is opened for writing.
extern "C" int fsync(int fd) {
  if (const char* pipe = std::getenv("GANG_PROGRAM_FSYNC")) {
    if (std::string(pipe) == "fails" || std::string(pipe) == "full") {
      errno = std::string(pipe) == "full" ? EDQUOT : EIO;
      return -1;
    }
    close(open(pipe, O_RDONLY | O_CLOEXEC));
  }
  return static_cast<int>(syscall(SYS_fsync, fd));
}

namespace {

namespace fs = std::filesystem;
namespace nn = torch::nn;

// A model in which each rank has a separate layer.
class Split : public attune::DistributedTrainable {
 public:
  void Setup(const attune::Config&) override {
    const at::NoGradGuard no_grad;
    expert_->weight.fill_(context().rank() + 1);
  }

  attune::Metrics Step() override { return {{"weight", expert_->weight.item<double>()}}; }

  void Save(attune::CheckpointWriter& checkpoint) override { checkpoint.WriteText("all", "x"); }

  void SaveShard(attune::ShardWriter& shard) override {
    shard.Write("expert", *expert_);  // on rank 1: expert.rank-1.safetensors
  }

  // Sums the shards of all ranks, for any number of ranks.
  void Load(const attune::CheckpointReader& checkpoint) override {
    const at::NoGradGuard no_grad;
    double sum = 0;
    for (int rank = 0; rank < checkpoint.world_size(); ++rank) {
      checkpoint.Shard(rank).Read("expert", *expert_);
      sum += expert_->weight.item<double>();
    }
    expert_->weight.fill_(sum);
  }

 private:
  nn::Linear expert_{nn::LinearOptions(1, 1).bias(false)};
};

}  // namespace

namespace gang {

int MainOfSplit(int argc, char** argv) { return attune::Main<Split>(argc, argv); }

void Checkpoints(attune::Context& context) {
  const std::string mode = context.config().Text("mode");
  nn::Linear model(1, 1);
  const fs::path own = fs::temp_directory_path() / ("own-" + std::to_string(getpid()));
  bool going_on = true;
  while (going_on) {
    const attune::Metrics metrics = {{"step", static_cast<double>(context.step() + 1)}};
    if (mode == "logs") context.Log(metrics, static_cast<double>(context.step()) + 0.5);
    if (mode == "fails") throw std::runtime_error("file write failed");
    if (mode == "directory") {
      attune::CheckpointDirectory directory = context.PrepareCheckpointDirectory();
      torch::save(model, directory.path() / "model.pt");
      going_on = context.Report(metrics, std::move(directory));
    } else if (mode == "own") {
      fs::create_directory(own);
      torch::save(model, own / "model.pt");
      going_on = context.Report(metrics, attune::Checkpoint::FromDirectory(own));
      fs::remove_all(own);
    } else {
      going_on = context.Report(metrics, [&](attune::CheckpointWriter& checkpoint) {
        checkpoint.set_background(mode != "foreground");
        checkpoint.WriteText("count", std::to_string(context.step()));
      });
      if (mode == "announces") {
        context.Heartbeat(std::chrono::hours(2));
        while (true) pause();
      }
    }
  }
}

// Saves a model and its output for a sample. After a resume, reports the difference between the
// model's output and the saved one.
void Exchange(attune::Context& context) {
  nn::Sequential model(nn::Conv2d(nn::Conv2dOptions(1, 3, 3).bias(false)), nn::BatchNorm2d(3),
                       nn::Flatten(), nn::Linear(3 * 6 * 6, 2));
  attune::TensorMap sample{{"input", torch::rand({5, 1, 8, 8})}};
  model->forward(sample.at("input"));  // changes the running statistics
  model->eval();
  const at::NoGradGuard no_grad;
  double error = 0;
  if (const attune::CheckpointReader* checkpoint = context.checkpoint()) {
    checkpoint->Read("model", *model);
    sample = checkpoint->ReadTensors("sample");
    const at::Tensor output = model->forward(sample.at("input"));
    error = (output - sample.at("output")).abs().max().item<double>();
  }
  sample["output"] = model->forward(sample.at("input"));
  static_cast<void>(context.Report({{"error", error}}, [&](attune::CheckpointWriter& checkpoint) {
    checkpoint.Write("model", *model);
    checkpoint.Write("sample", sample);
  }));
}

}  // namespace gang
