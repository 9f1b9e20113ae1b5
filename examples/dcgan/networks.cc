#include "examples/dcgan/networks.h"

#include <ATen/CPUGeneratorImpl.h>
#include <attune/checkpoint.h>
#include <attune/file_lock.h>
#include <torch/nn.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <vector>

#include "examples/fashion_mnist/dataset.h"
#include "examples/fashion_mnist/models.h"

namespace dcgan {
namespace {

namespace nn = torch::nn;
namespace fs = std::filesystem;

constexpr double kWeightDeviation = 0.02;
constexpr double kLeak = 0.2;
constexpr std::uint64_t kNoiseSeed = 1;
constexpr std::int64_t kJudgeWidth = 16;
constexpr std::int64_t kJudgeBatch = 64;
constexpr std::int64_t kGridSide = 8;

nn::Sequential DrawWeights(nn::Sequential net) {
  const torch::NoGradGuard no_grad;
  for (const auto& module : net->modules(/*include_self=*/false)) {
    for (auto& parameter : module->named_parameters(/*recurse=*/false)) {
      if (parameter.key() == "bias") {
        parameter->zero_();
      } else {
        parameter->normal_(module->as<nn::BatchNorm2d>() ? 1 : 0, kWeightDeviation);
      }
    }
  }
  return net;
}

nn::ConvTranspose2d Upsample(std::int64_t in, std::int64_t out, int kernel, int stride,
                             int padding) {
  return nn::ConvTranspose2d(
      nn::ConvTranspose2dOptions(in, out, kernel).stride(stride).padding(padding).bias(false));
}

nn::Conv2d Downsample(std::int64_t in, std::int64_t out, int kernel, int stride, int padding) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(padding).bias(false));
}

nn::LeakyReLU Leaky() { return nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(kLeak)); }

fs::path CacheFolder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME")) return fs::path(cache) / "attune-dcgan";
  if (const char* home = std::getenv("HOME")) return fs::path(home) / ".cache" / "attune-dcgan";
  throw std::runtime_error("dcgan: set XDG_CACHE_HOME or HOME; the classifier is stored there");
}

void TrainJudge(nn::Sequential& net, std::int64_t samples) {
  at::manual_seed(kNoiseSeed);
  net = fashion_mnist::ConvNet(kJudgeWidth);
  const auto images = fashion_mnist::Dataset::Load("train");
  samples = std::min(samples, images.size());
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.03).momentum(0.9));
  for (std::int64_t begin = 0; begin < samples; begin += kJudgeBatch) {
    const auto batch = images.Take(begin, std::min(begin + kJudgeBatch, samples), torch::kCPU);
    sgd.zero_grad();
    torch::cross_entropy_loss(net->forward(batch.images), batch.labels).backward();
    sgd.step();
  }
}

// The checkpoint of a judge that was trained on `samples` images. Trains it if there is none.
fs::path FindOrTrainJudge(std::int64_t samples) {
  const fs::path folder = CacheFolder() / ("samples-" + std::to_string(samples));
  fs::create_directories(folder);
  const attune::FileLock lock(folder / "lock");
  const fs::path checkpoint = folder / "step-1-attempt-1";  // the writer's name for step 1
  if (fs::exists(checkpoint)) return checkpoint;
  std::cout << "dcgan: trains a classifier and keeps it in " << folder.string() << std::endl;
  nn::Sequential net;
  TrainJudge(net, samples);
  attune::CheckpointWriter writer(folder, /*step=*/1, /*attempt=*/1, /*world_size=*/1);
  writer.Write("model", *net);
  return writer.Commit().path;
}

}  // namespace

nn::Sequential Generator(std::int64_t width) {
  return DrawWeights(nn::Sequential(
      Upsample(kNoise, 2 * width, 7, 1, 0), nn::BatchNorm2d(2 * width), nn::ReLU(),  // 7 × 7
      Upsample(2 * width, width, 4, 2, 1), nn::BatchNorm2d(width), nn::ReLU(),       // 14 × 14
      Upsample(width, 1, 4, 2, 1), nn::Tanh()));
}

nn::Sequential Discriminator(std::int64_t width) {
  return DrawWeights(nn::Sequential(
      Downsample(1, width, 4, 2, 1), Leaky(),                                      // 14 × 14
      Downsample(width, 2 * width, 4, 2, 1), nn::BatchNorm2d(2 * width), Leaky(),  // 7 × 7
      Downsample(2 * width, 1, 7, 1, 0), nn::Flatten(nn::FlattenOptions().start_dim(0))));
}

at::Tensor FixedNoise(std::int64_t n) {
  return torch::randn({n, kNoise, 1, 1}, at::make_generator<at::CPUGeneratorImpl>(kNoiseSeed));
}

Judge::Judge(const std::string& checkpoint, std::int64_t samples) {
  const attune::CheckpointReader reader(checkpoint.empty() ? FindOrTrainJudge(samples)
                                                           : fs::path(checkpoint));
  const attune::Config config = reader.config();
  net_ = fashion_mnist::MakeModel(config.TextOr("model", "convnet"),
                                  config.IntOr("width", kJudgeWidth));
  reader.Read("model", *net_);
  net_->eval();
}

at::Tensor Judge::operator()(const at::Tensor& images) {
  const torch::NoGradGuard no_grad;
  const at::Tensor pixels = (images.cpu() + 1) / 2;
  return net_->forward((pixels - fashion_mnist::kPixelMean) / fashion_mnist::kPixelDeviation)
      .softmax(1);
}

void WriteSamples(nn::SequentialImpl& generator, const std::string& file) {
  const torch::NoGradGuard no_grad;
  generator.eval();
  at::Tensor grid = generator.forward(FixedNoise(kGridSide * kGridSide));
  const std::int64_t rows = kGridSide * grid.size(2);
  const std::int64_t columns = kGridSide * grid.size(3);
  grid = grid.view({kGridSide, kGridSide, grid.size(2), grid.size(3)}).permute({0, 2, 1, 3});
  grid = ((grid + 1) * 127.5).round().to(torch::kByte).contiguous();
  std::ofstream out(file, std::ios::binary);
  out << "P5\n" << columns << " " << rows << "\n255\n";
  out.write(reinterpret_cast<const char*>(grid.data_ptr<std::uint8_t>()), rows * columns);
  if (!out.flush()) throw std::runtime_error(file + ": cannot be written");
}

}  // namespace dcgan
