// The examples of worker groups in docs/reference/cpp-sdk.md, so that CI compiles and runs them.

#include <attune/file_lock.h>
#include <attune/worker_group.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "tests/unit/trainable/driver/group_modes.h"

namespace {

void Prepare(const std::filesystem::path& file) { std::ofstream(file) << "prepared"; }

class Model {
 public:
  Model(const attune::Worker& worker, const std::filesystem::path& folder, std::int64_t width)
      : worker_(worker), line_(width, 1), sgd_(line_->parameters(), 0.1) {
    const attune::FileLock lock(folder / "prepared.lock");
    if (!std::filesystem::exists(folder / "prepared")) Prepare(folder / "prepared");
  }

  double Train(int steps) {
    at::Tensor loss;
    for (int step = 0; step < steps; ++step) {
      const at::Tensor x = torch::randn({32, line_->options.in_features()});
      sgd_.zero_grad();
      loss = torch::mse_loss(line_(x), x.sum(1, /*keepdim=*/true));
      loss.backward();
      sgd_.step();
      worker_.context.Heartbeat();
    }
    return loss.item<double>();
  }

  torch::nn::Linear module() { return line_; }

 private:
  attune::Worker worker_;
  torch::nn::Linear line_;
  torch::optim::SGD sgd_;
};

}  // namespace

namespace group {

void Docs() {
  const std::string folder = std::filesystem::temp_directory_path();
  attune::WorkerGroup<Model> models({.num_workers = 2, .seed = 7}, folder, /*width=*/3);
  models.SetWeights(models.GetWeights(0));
  for (int round = 0; round < 5; ++round) {
    for (auto& loss : models.Call<&Model::Train>(20)) std::cout << loss.get() << ' ';
    models.AverageWeights();
  }
  const auto bias = models.CallOne(1, [](Model& model) { return model.module()->bias; });
  try {
    models.Call<&Model::Train>(1)[0].get();
  } catch (const attune::WorkerError& error) {
    if (error.lost()) std::cerr << "worker " << error.worker() << " is gone\n";
  }
  std::cout << "\ndone" << std::endl;
}

}  // namespace group
