#include "examples/parallel_models/images.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/serialize.h>
#include <torch/types.h>

#include <algorithm>
#include <iostream>
#include <vector>

#include "examples/fashion_mnist/dataset.h"
#include "examples/fashion_mnist/idx.h"

namespace parallel_models {
namespace {

// Standard deviation of the noise in synthetic images. Their ten patterns have a deviation of 1.
constexpr double kNoise = 6;

bool HasFashionMnist() {
  return std::filesystem::exists(fashion_mnist::DataFolder() / "train-images-idx3-ubyte.gz");
}

// Ten patterns with noise.
Images MakeSynthetic(std::int64_t count) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(/*seed=*/1);
  const at::Tensor patterns = torch::randn({10, 28 * 28}, generator);
  const at::Tensor labels = torch::randint(10, {count}, generator, at::kLong);
  const at::Tensor noise = torch::randn({count, 28 * 28}, generator);
  return {(patterns.index_select(0, labels) + kNoise * noise).div_(kNoise), labels};
}

Images Read(std::int64_t count) {
  if (!HasFashionMnist()) {
    std::cout << "Fashion-MNIST is not in " << fashion_mnist::DataFolder().string()
              << "; using synthetic images" << std::endl;
    return MakeSynthetic(count);
  }
  const fashion_mnist::Dataset all = fashion_mnist::Dataset::Load("train");
  const fashion_mnist::Batch batch = all.Take(0, std::min(count, all.size()), torch::kCPU);
  return {batch.images.flatten(1), batch.labels};
}

}  // namespace

std::string FileName(std::int64_t count) {
  return (HasFashionMnist() ? "fashion-mnist-" : "synthetic-") + std::to_string(count) + ".pt";
}

void Prepare(std::int64_t count, const std::filesystem::path& file) {
  const Images images = Read(count);
  const std::filesystem::path part = file.string() + ".part";
  torch::save(std::vector<at::Tensor>{images.pixels, images.labels}, part.string());
  std::filesystem::rename(part, file);
}

Images Load(const std::filesystem::path& file) {
  std::vector<at::Tensor> tensors;
  torch::load(tensors, file.string());
  return {tensors.at(0), tensors.at(1)};
}

}  // namespace parallel_models
