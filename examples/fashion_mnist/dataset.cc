#include "examples/fashion_mnist/dataset.h"

#include <stdexcept>
#include <utility>

#include "examples/fashion_mnist/idx.h"

namespace fashion_mnist {
namespace {

// Of the training images' pixels, scaled to [0, 1].
constexpr double kPixelMean = 0.2860;
constexpr double kPixelDeviation = 0.3530;

torch::Tensor LoadTensor(const std::string& file) {
  const Idx idx = ReadIdx(DataFolder() / file);
  const auto bytes = const_cast<std::uint8_t*>(idx.bytes.data());  // only read, and then copied
  return torch::from_blob(bytes, idx.shape, torch::kByte).clone();
}

Batch ToBatch(const torch::Tensor& images, const torch::Tensor& labels, torch::Device device) {
  auto pixels = images.to(device).to(torch::kFloat).div_(255);
  return {pixels.sub_(kPixelMean).div_(kPixelDeviation), labels.to(device).to(torch::kLong)};
}

}  // namespace

Dataset::Dataset(torch::Tensor images, torch::Tensor labels)
    : images_(std::move(images)), labels_(std::move(labels)) {}

Dataset Dataset::Load(const std::string& part) {
  const torch::Tensor images = LoadTensor(part + "-images-idx3-ubyte.gz");
  const torch::Tensor labels = LoadTensor(part + "-labels-idx1-ubyte.gz");
  if (images.dim() != 3 || labels.dim() != 1 || images.size(0) != labels.size(0)) {
    throw std::runtime_error((DataFolder() / part).string() + "-*: images and labels do not match");
  }
  return Dataset(images.unsqueeze(1), labels);
}

Dataset Dataset::Range(std::int64_t begin, std::int64_t end) const {
  return Dataset(images_.slice(0, begin, end), labels_.slice(0, begin, end));
}

Batch Dataset::Take(const std::vector<std::int64_t>& samples, torch::Device device) const {
  const auto index = torch::tensor(samples, torch::kLong);
  return ToBatch(images_.index_select(0, index), labels_.index_select(0, index), device);
}

Batch Dataset::Take(std::int64_t begin, std::int64_t end, torch::Device device) const {
  return ToBatch(images_.slice(0, begin, end), labels_.slice(0, begin, end), device);
}

}  // namespace fashion_mnist
