#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace parallel_models {

struct Images {
  at::Tensor pixels;  // (n, 784), normalised floats
  at::Tensor labels;  // (n), integers below 10
};

// The name of the file for `count` images.
std::string FileName(std::int64_t count);

// Writes the first `count` training images of Fashion-MNIST. If the dataset is not installed,
// writes synthetic images. The file appears when it is complete.
void Prepare(std::int64_t count, const std::filesystem::path& file);

Images Load(const std::filesystem::path& file);

}  // namespace parallel_models
