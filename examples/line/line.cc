#include <attune/attune.h>
#include <torch/torch.h>

class Line : public attune::DistributedTrainable {
  void Setup(const attune::Config& config) override {
    model_ = context().PrepareModel(torch::nn::Linear(1, 1));
    sgd_ = std::make_unique<torch::optim::SGD>(model_->parameters(), config.Real("lr"));
  }
  attune::Metrics Step() override {
    const auto x = torch::rand({64, 1});
    sgd_->zero_grad();
    const auto loss = torch::mse_loss(model_(x), 3 * x + 1);
    loss.backward();
    sgd_->step();
    return {{"loss", loss.item<double>()}};
  }
  void Save(attune::CheckpointWriter& to) override { to.Write("model", *model_); }
  void Load(const attune::CheckpointReader& from) override { from.Read("model", *model_); }

  attune::DistributedModel<torch::nn::Linear> model_;
  std::unique_ptr<torch::optim::SGD> sgd_;
};

int main(int argc, char** argv) { return attune::Main<Line>(argc, argv); }
