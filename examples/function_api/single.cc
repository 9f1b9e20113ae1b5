// Trains an image classifier in one process, with LibTorch alone.

#include <torch/data/dataloader.h>
#include <torch/data/samplers/random.h>
#include <torch/nn.h>
#include <torch/optim/sgd.h>

#include <iostream>

#include "examples/fashion_mnist/images.h"
#include "examples/fashion_mnist/models.h"

using fashion_mnist::Images;

double Accuracy(torch::nn::SequentialImpl& net) {
  const torch::NoGradGuard no_grad;
  const auto test = fashion_mnist::Dataset::Load("t10k").Take(0, 1'000, torch::kCPU);
  return net.forward(test.images)
      .argmax(1)
      .eq(test.labels)
      .to(torch::kDouble)
      .mean()
      .item<double>();
}

int main() {
  const auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      Images("train", 0, 6'000), 64);
  auto net = fashion_mnist::ConvNet(16);
  torch::optim::SGD sgd(net->parameters(), 0.05);
  for (int epoch = 1; epoch <= 5; ++epoch) {
    net->train();
    for (auto& batch : *loader) {
      sgd.zero_grad();
      torch::cross_entropy_loss(net->forward(batch.data), batch.target).backward();
      sgd.step();
    }
    net->eval();
    std::cout << "epoch " << epoch << "  accuracy " << Accuracy(*net) << std::endl;
  }
}
