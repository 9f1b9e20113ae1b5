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

// What a file of so many images is called.
std::string NameOf(std::int64_t count);

// Writes the first of Fashion-MNIST's training images, or, where that is not installed, images that
// are made up. The file appears when it is complete.
void Prepare(std::int64_t count, const std::filesystem::path& file);

Images Load(const std::filesystem::path& file);

}  // namespace parallel_models
