// A TorchTrainer that a sweep tunes. The same creators train by themselves with `--alone`.

#include <attune/torch_trainer.h>
#include <torch/nn/modules/loss.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>

#include <iostream>
#include <string>

#include "examples/fashion_mnist/images.h"
#include "examples/fashion_mnist/models.h"

namespace {

using attune::Config;
using fashion_mnist::Images;

constexpr attune::Creators kCreators{
    .model = [](const Config& config) { return fashion_mnist::ConvNet(config.Int("width")); },
    .data =
        [](const Config& config) {
          const std::int64_t samples = config.IntOr("samples", 6'000);
          return attune::TrainerData{Images("train", 0, samples), Images("train", 55'000, 56'000)};
        },
    .optimizer =
        [](torch::nn::Sequential& net, const Config& config) {
          return torch::optim::SGD(
              net->parameters(),
              torch::optim::SGDOptions(config.Real("lr")).momentum(config.Real("momentum")));
        },
    .loss = [](const Config&) { return torch::nn::CrossEntropyLoss(); },
    .scheduler =
        [](torch::optim::SGD& sgd, const Config&) {
          return torch::optim::StepLR(sgd, /*step_size=*/3, /*gamma=*/0.5);
        }};

int TrainAlone(int argc, char** argv) {
  attune::Init(argc, argv);
  attune::TorchTrainer trainer(kCreators,
                               {.num_workers = 2,
                                .batch_size = 64,
                                .config = {{"width", 16}, {"lr", 0.05}, {"momentum", 0.9}}});
  for (int epoch = 0; epoch < 3; ++epoch) {
    attune::Metrics metrics = trainer.Train().metrics;
    metrics.merge(trainer.Validate().metrics);
    std::cout << attune::ToText(metrics) << std::endl;
  }
  std::cout << "saved " << trainer.Save("tune_trainer-checkpoints").path.string() << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  fashion_mnist::PreloadTrainingFiles();
  if (argc > 1 && argv[1] == std::string("--alone")) return TrainAlone(argc, argv);
  return attune::Main(argc, argv, attune::AsTrainable(kCreators, {.batch_size = 64}));
}
