// The code that docs/trainable.md shows, so that it compiles and runs.

#include <attune/attune.h>
#include <torch/data/datasets/base.h>
#include <torch/data/datasets/map.h>
#include <torch/data/transforms/stack.h>
#include <torch/nn.h>
#include <torch/optim.h>

#include <memory>
#include <optional>

#include "tests/unit/trainable/gang_modes.h"

namespace {

class Points : public torch::data::datasets::Dataset<Points> {
 public:
  torch::data::Example<> get(std::size_t i) override {
    const auto x = torch::full({2}, static_cast<double>(i) / 100);
    return {x, x.sum().reshape({1})};
  }
  std::optional<std::size_t> size() const override { return 100; }
};

using Stacked = torch::data::datasets::MapDataset<Points, torch::data::transforms::Stack<>>;

class Fit : public attune::DistributedTrainable {
  void Setup(const attune::Config& config) override {
    model_ = context().PrepareModel(torch::nn::Linear(2, 1));
    sgd_ = std::make_unique<torch::optim::SGD>(model_->parameters(), config.RealOr("lr", 0.1));
    loader_ = std::make_unique<attune::DataLoader<Stacked>>(context().PrepareDataLoader(
        Points().map(torch::data::transforms::Stack<>()), {.batch_size = 32, .threads = 2}));
  }

  attune::Metrics Step() override {
    double loss_of_epoch = 0;
    for (auto& batch : *loader_) {
      sgd_->zero_grad();
      const auto loss = torch::mse_loss(model_(batch.data), batch.target);
      loss.backward();
      sgd_->step();
      loss_of_epoch += loss.item<double>();
    }
    return context().ReduceMean({{"loss", loss_of_epoch}});
  }

  void Save(attune::CheckpointWriter& checkpoint) override {
    checkpoint.Write("model", *model_);
    checkpoint.Write("optimizer", *sgd_);
    checkpoint.Write("data", loader_->state_dict());
  }

  void Load(const attune::CheckpointReader& checkpoint) override {
    checkpoint.Read("model", *model_);
    checkpoint.Read("optimizer", *sgd_);
    loader_->load_state_dict(checkpoint.ReadTensors("data"));
  }

  attune::DistributedModel<torch::nn::LinearImpl> model_;
  std::unique_ptr<torch::optim::SGD> sgd_;
  std::unique_ptr<attune::DataLoader<Stacked>> loader_;
};

}  // namespace

namespace gang {

void Docs(attune::Context& context) {
  Fit fit;
  attune::trainable::TrainByStep(context, fit);
}

}  // namespace gang
