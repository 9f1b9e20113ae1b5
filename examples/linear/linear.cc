// Two workers fit a straight line to noisy points. This is the smallest program with a
// TorchTrainer.

#include <attune/torch_trainer.h>
#include <torch/data/datasets/tensor.h>
#include <torch/data/example.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/loss.h>
#include <torch/optim/sgd.h>

#include <iostream>
#include <string>
#include <vector>

namespace {

constexpr double kSlope = 2;
constexpr double kIntercept = 5;
constexpr double kNoise = 0.1;

// y = 2 x + 5 with a little noise.
class Points : public torch::data::datasets::BatchDataset<Points, torch::data::Example<>> {
 public:
  explicit Points(std::int64_t size) : x_(torch::rand({size, 1})) {
    y_ = kSlope * x_ + kIntercept + kNoise * torch::randn({size, 1});
  }

  torch::data::Example<> get_batch(c10::ArrayRef<std::size_t> indices) override {
    const at::Tensor rows =
        torch::tensor(std::vector<std::int64_t>(indices.begin(), indices.end()));
    return {x_.index_select(0, rows), y_.index_select(0, rows)};
  }
  std::optional<std::size_t> size() const override { return x_.size(0); }

 private:
  at::Tensor x_, y_;
};

}  // namespace

int main(int argc, char** argv) {
  attune::Init(argc, argv);
  attune::TorchTrainer trainer(
      attune::Creators{.model = [](const attune::Config&) { return torch::nn::Linear(1, 1); },
                       .data =
                           [](const attune::Config& config) {
                             const std::int64_t samples = config.Int("samples");
                             return attune::TrainerData{Points(samples), Points(samples / 4)};
                           },
                       .optimizer =
                           [](torch::nn::Linear& line, const attune::Config& config) {
                             return torch::optim::SGD(line->parameters(), config.Real("lr"));
                           },
                       .loss = [](const attune::Config&) { return torch::nn::MSELoss(); }},
      {.num_workers = 2, .batch_size = 32, .config = {{"lr", 0.1}, {"samples", 1000}}});

  for (int epoch = 0; epoch < 10; ++epoch) {
    attune::Metrics metrics = trainer.Train().metrics;
    metrics.merge(trainer.Validate().metrics);
    std::cout << "epoch " << epoch + 1 << "  " << attune::ToText(metrics) << std::endl;
  }
  const torch::nn::Linear line = trainer.GetModel();
  std::cout << "y = " << line->weight.item<double>() << " x + " << line->bias.item<double>()
            << std::endl;
}
