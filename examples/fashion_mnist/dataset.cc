#include "examples/fashion_mnist/dataset.h"

#include <filesystem>
#include <map>
#include <stdexcept>
#include <utility>

#include "examples/fashion_mnist/idx.h"

namespace fashion_mnist {
namespace {

constexpr const char* kImages = "-images-idx3-ubyte.gz";
constexpr const char* kLabels = "-labels-idx1-ubyte.gz";

// Keeps each file in memory until the process ends. Forked processes share it.
const Idx& ReadOnce(const std::filesystem::path& path) {
  static std::map<std::filesystem::path, Idx> files;
  const auto found = files.find(path);
  return found != files.end() ? found->second : files.emplace(path, ReadIdx(path)).first->second;
}

torch::Tensor LoadTensor(const std::string& file) {
  const Idx& idx = ReadOnce(DataFolder() / file);
  const auto bytes = const_cast<std::uint8_t*>(idx.bytes.data());  // never written
  return torch::from_blob(bytes, idx.shape, torch::kByte);
}

Batch ToBatch(const torch::Tensor& images, const torch::Tensor& labels, torch::Device device) {
  auto pixels = images.to(device).to(torch::kFloat).div_(255);
  return {pixels.sub_(kPixelMean).div_(kPixelDeviation), labels.to(device).to(torch::kLong)};
}

}  // namespace

void PreloadTrainingFiles() {
  try {
    ReadOnce(DataFolder() / (std::string("train") + kImages));
    ReadOnce(DataFolder() / (std::string("train") + kLabels));
  } catch (const std::runtime_error&) {
    // A rank that needs the files tries again and reports the error.
  }
}

Dataset::Dataset(torch::Tensor images, torch::Tensor labels)
    : images_(std::move(images)), labels_(std::move(labels)) {}

Dataset Dataset::Load(const std::string& part) {
  const torch::Tensor images = LoadTensor(part + kImages);
  const torch::Tensor labels = LoadTensor(part + kLabels);
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
