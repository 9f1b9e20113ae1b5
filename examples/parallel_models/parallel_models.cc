// One main() trains several models in parallel with an attune::WorkerGroup, each in a separate
// process. After each round, their weights are averaged (McMahan et al., Communication-Efficient
// Learning of Deep Networks from Decentralized Data, AISTATS 2017).
//
//   ./parallel_models --workers 3 --rounds 5

#include <attune/file_lock.h>
#include <attune/worker_group.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "examples/parallel_models/images.h"

namespace {

using parallel_models::Images;

constexpr std::int64_t kBatch = 64;
constexpr std::int64_t kHidden = 64;

// Reads the images from a file. The first worker prepares it for all workers.
Images SharedImages(const std::filesystem::path& folder, std::int64_t count) {
  std::filesystem::create_directories(folder);
  const std::filesystem::path file = folder / parallel_models::FileName(count);
  const attune::FileLock lock(folder / "images.lock");
  if (!std::filesystem::exists(file)) {
    std::cout << "preparing " << count << " images" << std::endl;
    parallel_models::Prepare(count, file);
  }
  return parallel_models::Load(file);
}

// Trains on five sixths of the images, in batches that each worker draws with a different seed.
class Classifier {
 public:
  Classifier(const attune::Worker& worker, const std::string& folder, std::int64_t images)
      : worker_(worker),
        net_(torch::nn::Linear(28 * 28, kHidden), torch::nn::ReLU(),
             torch::nn::Linear(kHidden, 10)) {
    const c10::Device device = worker.context.device();
    net_->to(device);
    optimizer_.emplace(net_->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
    const auto [pixels, labels] = SharedImages(folder, images);
    const std::int64_t end = pixels.size(0) * 5 / 6;
    train_ = {pixels.slice(0, 0, end).to(device), labels.slice(0, 0, end).to(device)};
    validation_ = {pixels.slice(0, end).to(device), labels.slice(0, end).to(device)};
  }

  // Returns the mean loss.
  double Train(std::int64_t steps) {
    double sum = 0;
    for (std::int64_t step = 0; step < steps; ++step) {
      const at::Tensor batch =
          torch::randint(train_.labels.size(0), {kBatch}, at::kLong).to(train_.labels.device());
      optimizer_->zero_grad();
      const at::Tensor loss =
          torch::cross_entropy_loss(net_->forward(train_.pixels.index_select(0, batch)),
                                    train_.labels.index_select(0, batch));
      loss.backward();
      optimizer_->step();
      sum += loss.item<double>();
      worker_.context.Heartbeat();
    }
    return sum / static_cast<double>(steps);
  }

  double Accuracy() {
    const torch::NoGradGuard no_grad;
    return net_->forward(validation_.pixels)
        .argmax(1)
        .eq(validation_.labels)
        .to(at::kDouble)
        .mean()
        .item<double>();
  }

  torch::nn::Sequential module() { return net_; }

 private:
  attune::Worker worker_;
  torch::nn::Sequential net_;
  std::optional<torch::optim::SGD> optimizer_;
  Images train_;
  Images validation_;
};

// Reads the command line. Throws std::invalid_argument for unknown options.
std::map<std::string, std::string> ParseOptions(int argc, char** argv) {
  std::map<std::string, std::string> options = {
      {"--workers", "3"}, {"--rounds", "5"},
      {"--steps", "100"}, {"--images", "12000"},
      {"--gpu", "0"},     {"--folder", std::filesystem::temp_directory_path() / "parallel_models"}};
  for (int i = 1; i < argc; i += 2) {
    if (!options.contains(argv[i]) || i + 1 == argc) {
      throw std::invalid_argument(
          "usage: parallel_models [--workers N] [--rounds N] [--steps N] [--images N] [--gpu 0|1] "
          "[--folder DIR]");
    }
    options[argv[i]] = argv[i + 1];
  }
  return options;
}

void Run(const std::map<std::string, std::string>& options) {
  const std::int64_t steps = std::stoll(options.at("--steps"));
  const std::int64_t images = std::stoll(options.at("--images"));
  attune::WorkerGroup<Classifier> models({.num_workers = std::stoi(options.at("--workers")),
                                          .use_gpu = options.at("--gpu") == "1",
                                          .stall_timeout = std::chrono::minutes(1)},
                                         options.at("--folder"), images);
  // Averaging weights works only for models that started with the same weights.
  models.SetWeights(models.GetWeights(0));
  std::cout << std::fixed << std::setprecision(4);
  for (int round = 1; round <= std::stoi(options.at("--rounds")); ++round) {
    attune::GetAll(models.Call<&Classifier::Train>(steps));
    std::cout << "round " << round << "  accuracy";
    for (auto& accuracy : models.Call<&Classifier::Accuracy>()) std::cout << ' ' << accuracy.get();
    models.AverageWeights();
    std::cout << "  of the average " << models.CallOne<&Classifier::Accuracy>(0).get() << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    attune::Init(argc, argv);
    Run(ParseOptions(argc, argv));
    return 0;
  } catch (const attune::WorkerError& error) {
    std::cerr << error.what() << (error.lost() ? " (lost)" : "") << std::endl;
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
  }
  return 1;
}
