// Calls functions on the workers of a TorchTrainer between epochs, and uses a WorkerGroup.

#include <attune/torch_trainer.h>
#include <attune/worker_group.h>
#include <torch/data/datasets/tensor.h>
#include <torch/data/example.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/loss.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>

#include <iostream>
#include <vector>

namespace {

class Points : public torch::data::datasets::BatchDataset<Points, torch::data::Example<>> {
 public:
  explicit Points(std::int64_t size) : x_(torch::rand({size, 1})) {}

  torch::data::Example<> get_batch(c10::ArrayRef<std::size_t> indices) override {
    const at::Tensor rows =
        torch::tensor(std::vector<std::int64_t>(indices.begin(), indices.end()));
    const at::Tensor x = x_.index_select(0, rows);
    return {x, 2 * x + 1};
  }
  std::optional<std::size_t> size() const override { return x_.size(0); }

 private:
  at::Tensor x_;
};

constexpr attune::Creators kCreators{
    .model = [](const attune::Config&) { return torch::nn::Linear(1, 1); },
    .data =
        [](const attune::Config&) {
          return attune::TrainerData{Points(64), Points(16)};
        },
    .optimizer = [](torch::nn::Linear& line,
                    const attune::Config&) { return torch::optim::SGD(line->parameters(), 0.1); },
    .loss = [](const attune::Config&) { return torch::nn::MSELoss(); },
    .scheduler =
        [](torch::optim::SGD& sgd, const attune::Config&) {
          return torch::optim::StepLR(sgd, /*step_size=*/1, /*gamma=*/0.5);
        }};

void UseTrainer() {
  attune::TorchTrainer trainer(
      kCreators, {.num_workers = 2, .scheduler_step_freq = attune::SchedulerStep::kManual});
  const attune::TensorMap before = trainer.state_dict();
  const attune::TrainerStats stats = trainer.Train({.num_steps = 1});
  std::cout << "trained on " << stats.samples << " samples" << std::endl;
  trainer.UpdateScheduler();
  const std::vector<std::int64_t> places = trainer.ApplyAllWorkers([](auto& training) {
    training.scheduler().step();
    training.validation_loader().set_epoch(0);
    auto batch = training.validation_loader().Next();
    training.ValidateBatch(batch);
    return training.validates() ? training.train_loader().offset() : -1;
  });
  std::cout << trainer.num_workers() << " workers are at samples " << places[0] << " and "
            << places[1] << std::endl;
  trainer.load_state_dict(before);
  trainer.Shutdown();
}

struct Counter {
  std::int64_t Add(std::int64_t more) { return count += more; }
  std::int64_t count = 0;
};

void UseGroup() {
  attune::WorkerGroup<Counter> counters({.num_workers = 2});
  counters.CallOne<&Counter::Add>(0, 1).get();
  std::int64_t sum = 0;
  for (const std::int64_t count : attune::GetAll(counters.Call<&Counter::Add>(2))) sum += count;
  std::cout << counters.size() << " counters have the sum " << sum << std::endl;
  counters.Shutdown();
}

}  // namespace

int main(int argc, char** argv) {
  attune::Init(argc, argv);
  UseTrainer();
  UseGroup();
}
