// Trains an image classifier on Fashion-MNIST with any number of workers.
//
//   attune run sweep.yaml                                        a search
//   ./fashion_mnist --config lr=0.05,width=16 --workers 2        one training by hand
//   ./fashion_mnist --evaluate CHECKPOINT                        the accuracy of a checkpoint

#include <attune/attune.h>
#include <torch/nn.h>
#include <torch/optim.h>

#include <algorithm>
#include <cstring>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>

#include "examples/fashion_mnist/dataset.h"
#include "examples/fashion_mnist/models.h"

namespace fashion_mnist {
namespace {

// The last twelfth of the training images is for validation.
constexpr std::int64_t kValidationParts = 12;
constexpr std::int64_t kEvaluationBatch = 250;

std::int64_t ValidationBegin(const Dataset& images) {
  return images.size() - images.size() / kValidationParts;
}

torch::nn::Sequential CreateModel(const attune::Config& config) {
  return MakeModel(config.TextOr("model", "convnet"), config.IntOr("width", 16));
}

std::unique_ptr<torch::optim::Optimizer> MakeOptimizer(const attune::Config& config,
                                                       std::vector<torch::Tensor> parameters) {
  const double lr = config.Real("lr");
  const double weight_decay = config.RealOr("weight_decay", 0);
  const std::string name = config.TextOr("optimizer", "sgd");
  if (name == "sgd") {
    return std::make_unique<torch::optim::SGD>(parameters,
                                               torch::optim::SGDOptions(lr)
                                                   .momentum(config.RealOr("momentum", 0.9))
                                                   .weight_decay(weight_decay));
  }
  if (name == "adamw") {
    return std::make_unique<torch::optim::AdamW>(
        parameters, torch::optim::AdamWOptions(lr).weight_decay(weight_decay));
  }
  throw std::invalid_argument("optimizer: \"" + name + "\" is neither sgd nor adamw");
}

// Counts correct answers in this rank's share of the images. Shares consist of whole batches, so
// the batches and the rounding errors are the same for any number of ranks.
double CountCorrect(torch::nn::SequentialImpl& model, const Dataset& images, torch::Device device,
                    int rank = 0, int world_size = 1) {
  const torch::NoGradGuard no_grad;
  double correct = 0;
  for (std::int64_t begin = rank * kEvaluationBatch; begin < images.size();
       begin += world_size * kEvaluationBatch) {
    const Batch batch =
        images.Take(begin, std::min(begin + kEvaluationBatch, images.size()), device);
    correct += model.forward(batch.images).argmax(1).eq(batch.labels).sum().item<double>();
  }
  return correct;
}

// One step trains on `samples_per_step` images and validates.
class FashionMnist : public attune::DistributedTrainable {
 public:
  void Setup(const attune::Config& config) override {
    model_ = context().PrepareModel(CreateModel(config));
    optimizer_ = MakeOptimizer(config, model_->parameters());

    const Dataset images = Dataset::Load("train");
    train_ = images.Range(0, ValidationBegin(images));
    validation_ = images.Range(ValidationBegin(images), images.size());
    sampler_ = context().PrepareSampler(train_->size());

    const std::int64_t batch = config.IntOr("batch", 128);  // size over all ranks
    if (batch % context().world_size() != 0) {
      throw std::invalid_argument("batch: " + std::to_string(batch) +
                                  " is not divisible by the number of workers, " +
                                  std::to_string(context().world_size()));
    }
    batch_of_rank_ = batch / context().world_size();
    batches_per_step_ =
        std::max<std::int64_t>(1, config.IntOr("samples_per_step", train_->size()) / batch);
  }

  attune::Metrics Step() override {
    double loss_sum = 0;
    model_.train();
    for (std::int64_t i = 0; i < batches_per_step_; ++i) {
      const std::int64_t batch_number = context().step() * batches_per_step_ + i;
      const std::int64_t position = batch_number * batch_of_rank_ * context().world_size();
      const Batch batch =
          train_->Take(sampler_->Take(position, batch_of_rank_), context().device());
      optimizer_->zero_grad();
      const auto loss = torch::cross_entropy_loss(model_(batch.images), batch.labels);
      loss.backward();
      optimizer_->step();
      loss_sum += loss.item<double>();
    }
    model_.eval();
    const double correct = CountCorrect(*model_, *validation_, context().device(), context().rank(),
                                        context().world_size());
    const auto sum = context().ReduceSum({{"correct", correct}, {"loss", loss_sum}});
    return {
        {"accuracy", sum.at("correct") / static_cast<double>(validation_->size())},
        {"loss", sum.at("loss") / static_cast<double>(batches_per_step_) / context().world_size()}};
  }

  void Save(attune::CheckpointWriter& checkpoint) override {
    checkpoint.Write("model", *model_);
    checkpoint.Write("optimizer", *optimizer_);
  }

  void Load(const attune::CheckpointReader& checkpoint) override {
    checkpoint.Read("model", *model_);
    checkpoint.Read("optimizer", *optimizer_);
  }

 private:
  attune::DistributedModel<torch::nn::Sequential> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::optional<Dataset> train_;
  std::optional<Dataset> validation_;
  std::optional<attune::DistributedSampler> sampler_;
  std::int64_t batch_of_rank_ = 0;
  std::int64_t batches_per_step_ = 0;
};

int Evaluate(const std::string& folder) {
  const attune::CheckpointReader checkpoint(folder);
  torch::nn::Sequential model = CreateModel(checkpoint.config());
  checkpoint.Read("model", *model);
  model->eval();

  const Dataset images = Dataset::Load("train");
  const Dataset test = Dataset::Load("t10k");
  const auto accuracy = [&model](const Dataset& dataset) {
    return CountCorrect(*model, dataset, torch::kCPU) / static_cast<double>(dataset.size());
  };
  std::cout << "accuracy " << accuracy(images.Range(ValidationBegin(images), images.size()))
            << "\ntest_accuracy " << accuracy(test) << std::endl;
  return 0;
}

}  // namespace
}  // namespace fashion_mnist

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--evaluate") == 0) {
    if (argc != 3) {
      std::cerr << "usage: fashion_mnist --evaluate CHECKPOINT" << std::endl;
      return 2;
    }
    try {
      return fashion_mnist::Evaluate(argv[2]);
    } catch (const std::exception& error) {
      std::cerr << error.what() << std::endl;
      return 1;
    }
  }
  fashion_mnist::PreloadTrainingFiles();
  return attune::Main<fashion_mnist::FashionMnist>(argc, argv);
}
