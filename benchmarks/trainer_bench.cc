// Measures the overhead of a TorchTrainer: the time from its construction to the first step on two
// workers, for the first trainer of a program and for later ones; and the time of an epoch of its
// default loop, compared with a loop that is written by hand.
//
//   trainer_bench [ROUNDS]

#include <attune/torch_trainer.h>
#include <torch/data/datasets/base.h>
#include <torch/data/example.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/loss.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

#include "benchmarks/arguments.h"

namespace {

namespace nn = torch::nn;
using attune::Config;
using Clock = std::chrono::steady_clock;

constexpr int kStarts = 15;
constexpr std::int64_t kSamples = 2'560;
constexpr std::int64_t kBatch = 64;

class Images : public torch::data::datasets::BatchDataset<Images, torch::data::Example<>> {
 public:
  torch::data::Example<> get_batch(c10::ArrayRef<std::size_t> samples) override {
    const auto size = static_cast<std::int64_t>(samples.size());
    return {torch::full({size, 1, 28, 28}, 0.5), torch::arange(size) % 10};
  }
  std::optional<std::size_t> size() const override { return kSamples; }
};

nn::Sequential CreateModel(const Config&) {
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 8, 3).stride(2)), nn::ReLU(),
                        nn::Conv2d(nn::Conv2dOptions(8, 16, 3).stride(2)), nn::ReLU(),
                        nn::Flatten(), nn::Linear(576, 10));
}
Images CreateData(const Config&) { return {}; }
torch::optim::SGD CreateOptimizer(nn::Sequential& net, const Config&) {
  return torch::optim::SGD(net->parameters(), 0.01);
}
nn::CrossEntropyLoss CreateLoss(const Config&) { return {}; }

constexpr attune::Creators kDefault{
    .model = CreateModel, .data = CreateData, .optimizer = CreateOptimizer, .loss = CreateLoss};

constexpr attune::Creators kByHand{.model = CreateModel,
                                   .data = CreateData,
                                   .optimizer = CreateOptimizer,
                                   .loss = CreateLoss,
                                   .train_function = [](auto& training) {
                                     training.model().train();
                                     training.train_loader().set_epoch(training.epoch());
                                     double loss_sum = 0;
                                     for (auto& batch : training.train_loader()) {
                                       training.optimizer().zero_grad();
                                       const auto loss = training.loss()(
                                           training.model()(batch.data), batch.target);
                                       loss.backward();
                                       training.optimizer().step();
                                       loss_sum += loss.template item<double>();
                                     }
                                     training.Record("train_loss", loss_sum, 1);
                                   }};

double MillisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double Median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

double StartAndStep() {
  const auto began = Clock::now();
  attune::TorchTrainer trainer(kDefault, {.num_workers = 2, .batch_size = kBatch});
  trainer.Train({.num_steps = 1});
  return MillisecondsSince(began);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds =
      attune::benchmarks::CountArgument(argc, argv, 1, /*fallback=*/15, "trainer_bench [ROUNDS]");
  const auto began = Clock::now();
  attune::Init(argc, argv);
  const double first = StartAndStep();
  const double since_main = MillisecondsSince(began);
  std::vector<double> next;
  for (int i = 0; i < kStarts; ++i) next.push_back(StartAndStep());
  std::cout << std::fixed << std::setprecision(1)
            << "from a TorchTrainer's construction to its first step, 2 workers\n"
            << "  the first of a program  " << first << " ms (" << since_main
            << " ms from the beginning of main)\n"
            << "  the next ones           " << Median(next) << " ms (median of " << kStarts
            << ", min " << *std::ranges::min_element(next) << ")" << std::endl;

  attune::TorchTrainer trainer(kDefault, {.num_workers = 2, .batch_size = kBatch});
  attune::TorchTrainer by_hand(kByHand, {.num_workers = 2, .batch_size = kBatch});
  std::vector<double> ratios;
  double last_trainer_ms = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto time = [](auto& trainer_to_time) {
      const auto start = Clock::now();
      trainer_to_time.Train();
      return MillisecondsSince(start);
    };
    // They take turns, so that other load on the machine affects both equally.
    double trainer_ms = 0, by_hand_ms = 0;
    if (round % 2 == 0) {
      trainer_ms = time(trainer);
      by_hand_ms = time(by_hand);
    } else {
      by_hand_ms = time(by_hand);
      trainer_ms = time(trainer);
    }
    last_trainer_ms = trainer_ms;
    ratios.push_back(trainer_ms / by_hand_ms);
  }
  std::cout << std::setprecision(3) << "an epoch of the default loop takes " << Median(ratios)
            << " times that of a loop by hand (median of " << rounds << "; the last "
            << std::setprecision(0) << last_trainer_ms << " ms)" << std::endl;
}
