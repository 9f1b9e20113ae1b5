// The random numbers of a step from LibTorch's generator, on each rank, in a training function and
// in a Trainable.

#include <attune/attune.h>
#include <torch/nn.h>

#include <string>

#include "tests/unit/trainable/program/gang_modes.h"

namespace {

// Creates a metric for each rank; ReduceSum() fills in those of other ranks.
attune::Metrics OfEachRank(attune::Context& context, const std::string& name, double value) {
  attune::Metrics metrics;
  for (int rank = 0; rank < context.world_size(); ++rank) {
    metrics[name + std::to_string(rank)] = rank == context.rank() ? value : 0;
  }
  return context.ReduceSum(metrics);
}

double Draw() { return gang::Hash(torch::rand({4})); }

class Drawing : public attune::DistributedTrainable {
  void Setup(const attune::Config& config) override {
    model_ = context().PrepareModel(torch::nn::Linear(4, 1));
    order_ = torch::randperm(config.IntOr("samples", 100));  // drawn in Setup(): equal on all ranks
  }

  attune::Metrics Step() override {
    const at::Tensor noise =
        torch::randn({8, 4});  // drawn in Step(): different for each rank and step
    attune::Metrics metrics = OfEachRank(context(), "step_", gang::Hash(noise));
    metrics.merge(OfEachRank(context(), "setup_", gang::Hash(order_.to(at::kFloat))));
    return metrics;
  }

  void Save(attune::CheckpointWriter& checkpoint) override { checkpoint.Write("model", *model_); }
  void Load(const attune::CheckpointReader& checkpoint) override {
    checkpoint.Read("model", *model_);
  }

  attune::DistributedModel<torch::nn::Linear> model_;
  at::Tensor order_;
};

void DrawInFunction(attune::Context& context) {
  attune::Metrics setup = OfEachRank(context, "setup_", Draw());
  const auto first = context.PrepareModel(torch::nn::Linear(2, 2));
  setup.merge(OfEachRank(context, "between_", Draw()));
  const auto second = context.PrepareModel(torch::nn::Linear(2, 2));
  const auto save = [&](attune::CheckpointWriter& checkpoint) {
    checkpoint.Write("model", *first);
  };
  attune::Metrics metrics;
  do {
    metrics = OfEachRank(context, "step_", Draw());
    metrics.insert(setup.begin(), setup.end());
  } while (context.Report(metrics, save));
}

}  // namespace

void gang::Draws(attune::Context& context) {
  if (context.config().Text("mode") == "function") return DrawInFunction(context);
  Drawing drawing;
  attune::trainable::TrainByStep(context, drawing, {});
}
