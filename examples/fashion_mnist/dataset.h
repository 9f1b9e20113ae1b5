#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace fashion_mnist {

// Mean and deviation of the training images' pixels, scaled to [0, 1].
inline constexpr double kPixelMean = 0.2860;
inline constexpr double kPixelDeviation = 0.3530;

struct Batch {
  torch::Tensor images;  // (n, 1, 28, 28), normalised floats
  torch::Tensor labels;  // (n), integers below 10
};

// Reads the files for training into memory, without creating tensors. Call it before
// attune::Main(): then it runs once per host, and the ranks, which are forked, share its memory.
void PreloadTrainingFiles();

// Images and labels in memory, as bytes.
class Dataset {
 public:
  // `part`: "train" (60,000 images) or "t10k" (10,000 images), from DataFolder() of idx.h. Throws
  // std::runtime_error.
  static Dataset Load(const std::string& part);

  // A part of this dataset; it shares the memory.
  Dataset Range(std::int64_t begin, std::int64_t end) const;

  std::int64_t size() const { return labels_.size(0); }

  Batch Take(const std::vector<std::int64_t>& samples, torch::Device device) const;
  Batch Take(std::int64_t begin, std::int64_t end, torch::Device device) const;

 private:
  Dataset(torch::Tensor images, torch::Tensor labels);

  torch::Tensor images_;  // (n, 1, 28, 28), bytes
  torch::Tensor labels_;  // (n), bytes
};

}  // namespace fashion_mnist
