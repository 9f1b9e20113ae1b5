#pragma once

#include <torch/nn.h>

#include <cstdint>
#include <string>

namespace fashion_mnist {

// Classifiers of images into ten classes. Images of Fashion-MNIST are grey and 28 × 28.

// Two convolutions with `width` and 2 × `width` channels, and two linear layers.
torch::nn::Sequential ConvNet(std::int64_t width);

// ResNet-18 (He et al., Deep Residual Learning for Image Recognition, CVPR 2016) with the first
// layer for small images of its §4.2. The first stage has `width` channels, 64 in the paper. Images
// may have any size; `channels` is the number of their channels.
torch::nn::Sequential ResNet18(std::int64_t width, std::int64_t channels = 1);

// "convnet" or "resnet18". Throws std::invalid_argument for another name.
torch::nn::Sequential MakeModel(const std::string& name, std::int64_t width);

}  // namespace fashion_mnist
