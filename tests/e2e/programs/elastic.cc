// A small regression for gangs that change their size. Each rank records the samples of each step.
// A gate (see support.py) holds rank 0 before a step.

#include <attune/attune.h>
#include <fcntl.h>
#include <sys/file.h>
#include <torch/nn.h>
#include <torch/optim.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

constexpr std::int64_t kSamples = 60;
constexpr std::int64_t kBatch =
    12;  // samples per step of the whole gang, for any number of ranks, by default
constexpr std::int64_t kInputs = 4;

class Elastic : public attune::DistributedTrainable {
 public:
  void Setup(const attune::Config& config) override {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(1);
    inputs_ = torch::randn({kSamples, kInputs}, generator);
    targets_ = inputs_.square().sum(1, /*keepdim=*/true);
    model_ = context().PrepareModel(torch::nn::Linear(kInputs, 1));
    optimizer_ = std::make_unique<torch::optim::SGD>(
        model_->parameters(), torch::optim::SGDOptions(config.Real("x") * 0.01).momentum(0.9));
    sampler_.emplace(context().PrepareSampler(kSamples));
    batch_per_worker_ = config.IntOr("batch_per_worker", 0);
    log_.open("samples-" + std::string(std::getenv("ATTUNE_ATTEMPT")) + "-" +
              std::to_string(context().rank()));
  }

  attune::Metrics Step() override {
    const std::int64_t step = context().step() + 1;
    if (context().rank() == 0) PassGate(step);
    const std::int64_t batch =
        batch_per_worker_ > 0 ? batch_per_worker_ * context().world_size() : kBatch;
    auto share = sampler_->NextShare(batch);
    if (!share) {
      sampler_->reset();
      share = sampler_->NextShare(batch);
    }
    log_ << step << ' ' << context().world_size() << ':';
    for (const std::size_t sample : *share) log_ << ' ' << sample;
    log_ << std::endl;

    const at::Tensor rows = torch::tensor(std::vector<std::int64_t>(share->begin(), share->end()));
    optimizer_->zero_grad();
    const at::Tensor loss = torch::mse_loss(model_->forward(inputs_.index_select(0, rows)),
                                            targets_.index_select(0, rows));
    loss.backward();
    optimizer_->step();
    attune::Metrics metrics{{"score", -loss.item<double>()}};
    // The unit of time of some sweeps.
    if (batch_per_worker_ > 0) metrics["samples"] = static_cast<double>(context().time() + batch);
    return context().ReduceMean(metrics);
  }

  void Save(attune::CheckpointWriter& checkpoint) override {
    checkpoint.Write("model", *model_);
    checkpoint.Write("optimizer", *optimizer_);
    checkpoint.Write("sampler", *sampler_);
  }
  void Load(const attune::CheckpointReader& checkpoint) override {
    checkpoint.Read("model", *model_);
    checkpoint.Read("optimizer", *optimizer_);
    checkpoint.Read("sampler", *sampler_);
  }

 private:
  static void PassGate(std::int64_t step) {
    const char* gates = std::getenv("GATES");
    const std::string path = std::string(gates) + "/step-" + std::to_string(step);
    const int gate = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (gate < 0) return;
    flock(gate, LOCK_SH);
    close(gate);
  }

  at::Tensor inputs_, targets_;
  attune::DistributedModel<torch::nn::Linear> model_;
  std::unique_ptr<torch::optim::SGD> optimizer_;
  std::optional<attune::DistributedSampler> sampler_;
  std::int64_t batch_per_worker_ = 0;
  std::ofstream log_;
};

}  // namespace

int main(int argc, char** argv) { return attune::Main<Elastic>(argc, argv); }
