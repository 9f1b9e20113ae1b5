// The same with any number of workers, in a trial of a sweep or started by hand. Train() is the
// only function that Attune calls.

#include <attune/attune.h>
#include <torch/nn.h>
#include <torch/optim/sgd.h>

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

void Train(attune::Context& context) {
  auto loader = context.PrepareDataLoader(Images("train", 0, 6'000), {.batch_size = 64});
  auto net = context.PrepareModel(fashion_mnist::ConvNet(16));
  torch::optim::SGD sgd(net->parameters(), context.config().Real("lr"));
  if (context.resumed()) context.checkpoint()->Read("model", *net);
  const auto save = [&](auto& checkpoint) { checkpoint.Write("model", *net); };
  do {
    net.train();
    for (auto& batch : loader) {
      sgd.zero_grad();
      torch::cross_entropy_loss(net(batch.data), batch.target).backward();
      sgd.step();
    }
    net.eval();
  } while (context.Report({{"accuracy", Accuracy(*net)}}, save));
}

int main(int argc, char** argv) { return attune::Main(argc, argv, Train); }
