#include "examples/fashion_mnist/models.h"

#include <stdexcept>

namespace fashion_mnist {
namespace {

namespace nn = torch::nn;

constexpr std::int64_t kClasses = 10;

nn::Conv2d Conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1) {
  return nn::Conv2d(
      nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

// Two 3 × 3 convolutions with a shortcut connection.
struct BasicBlockImpl : nn::Module {
  BasicBlockImpl(std::int64_t in, std::int64_t out, std::int64_t stride)
      : body(Conv(in, out, 3, stride), nn::BatchNorm2d(out), nn::ReLU(), Conv(out, out, 3),
             nn::BatchNorm2d(out)) {
    register_module("body", body);
    if (in != out || stride != 1) {
      shortcut = nn::Sequential(Conv(in, out, 1, stride), nn::BatchNorm2d(out));
      register_module("shortcut", shortcut);
    }
  }

  torch::Tensor forward(const torch::Tensor& x) {
    return torch::relu(body->forward(x) + (shortcut.is_empty() ? x : shortcut->forward(x)));
  }

  nn::Sequential body;
  nn::Sequential shortcut = nullptr;
};
TORCH_MODULE(BasicBlock);

}  // namespace

nn::Sequential ConvNet(std::int64_t width) {
  const auto conv = [](std::int64_t in, std::int64_t out) {
    return nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1));
  };
  return nn::Sequential(conv(1, width), nn::ReLU(), nn::MaxPool2d(2), conv(width, 2 * width),
                        nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(),
                        nn::Linear(2 * width * 7 * 7, 8 * width), nn::ReLU(),
                        nn::Linear(8 * width, kClasses));
}

nn::Sequential ResNet18(std::int64_t width, std::int64_t channels) {
  nn::Sequential net(Conv(channels, width, 3), nn::BatchNorm2d(width), nn::ReLU());
  std::int64_t in = width;
  for (const std::int64_t stage : {1, 2, 4, 8}) {
    net->push_back(BasicBlock(in, stage * width, stage == 1 ? 1 : 2));
    net->push_back(BasicBlock(stage * width, stage * width, 1));
    in = stage * width;
  }
  net->push_back(nn::AdaptiveAvgPool2d(1));
  net->push_back(nn::Flatten());
  net->push_back(nn::Linear(in, kClasses));
  return net;
}

nn::Sequential MakeModel(const std::string& name, std::int64_t width) {
  if (name == "convnet") return ConvNet(width);
  if (name == "resnet18") return ResNet18(width);
  throw std::invalid_argument("model: \"" + name + "\" is neither convnet nor resnet18");
}

}  // namespace fashion_mnist
