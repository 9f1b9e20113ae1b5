// The examples of docs/reference/cpp-sdk.md, so that CI compiles and runs them.

#include <attune/attune.h>
#include <attune/sync_batch_norm.h>
#include <torch/data/datasets/base.h>
#include <torch/data/datasets/map.h>
#include <torch/data/transforms/stack.h>
#include <torch/nn.h>
#include <torch/optim.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tests/unit/trainable/program/gang_modes.h"

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
    checkpoint.Write("data", *loader_);
  }

  void Load(const attune::CheckpointReader& checkpoint) override {
    checkpoint.Read("model", *model_);
    checkpoint.Read("optimizer", *sgd_);
    checkpoint.Read("data", *loader_);
  }

  attune::DistributedModel<torch::nn::Linear> model_;
  std::unique_ptr<torch::optim::SGD> sgd_;
  std::unique_ptr<attune::DataLoader<Stacked>> loader_;
};

struct ConvImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return torch::relu(bn1(conv1(x))); }
  torch::nn::Conv2d conv1 = register_module("conv1", torch::nn::Conv2d(1, 4, 3));
  attune::SyncBatchNorm bn1 = register_module("bn1", attune::SyncBatchNorm(4));
};
TORCH_MODULE(Conv);

double BatchNorms(attune::Context& context) {
  torch::nn::Sequential net(torch::nn::Linear(2, 8), torch::nn::BatchNorm1d(8), torch::nn::ReLU());
  attune::ConvertSyncBatchNorm(*net);
  auto of_rows = context.PrepareModel(net);
  auto of_images = context.PrepareModel(Conv());
  return (of_rows(torch::randn({4, 2})).sum() + of_images(torch::randn({2, 1, 5, 5})).sum())
      .item<double>();
}

class Gan {
 public:
  explicit Gan(attune::Context& context)
      : generator_(context.PrepareModel(torch::nn::Linear(2, 2))),
        discriminator_(context.PrepareModel(torch::nn::Linear(2, 1))),
        generator_sgd_(generator_->parameters(), 0.1) {}

  void TrainGenerator(const at::Tensor& noise) {
    generator_sgd_.zero_grad();
    {
      const attune::NoSync unwanted = discriminator_.no_sync();
      torch::softplus(-discriminator_(generator_(noise))).mean().backward();
    }
    generator_.clip_grad_norm_(1.0);
    generator_sgd_.step();
  }

 private:
  attune::DistributedModel<torch::nn::Linear> generator_;
  attune::DistributedModel<torch::nn::Linear> discriminator_;
  torch::optim::SGD generator_sgd_;
};

// Training step by step, with every feature of a model.
class Thorough {
 public:
  explicit Thorough(attune::Context& context)
      : context_(context),
        model_(context.PrepareModel(torch::nn::Linear(2, 1),
                                    {.gradient_compression = attune::GradientCompression::kBf16})),
        sgd_(model_->parameters(), 0.1) {}

  void LogLoss(const at::Tensor& loss, int batch) {
    context_.Log({{"batch_loss", loss.item<double>()}}, context_.step() + batch / 100.0);
  }

  void Accumulate(const std::vector<at::Tensor>& parts) {
    sgd_.zero_grad();
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const attune::NoSync local = model_.no_sync();
      (model_(parts[i]).mean() / parts.size()).backward();
    }
    (model_(parts.back()).mean() / parts.size()).backward();
    model_.clip_grad_norm_(1.0);
    sgd_.step();
  }

  void MixedPrecision(const at::Tensor& x, const at::Tensor& y) {
    sgd_.zero_grad();
    at::Tensor loss;
    {
      const attune::Autocast autocast(context_.device(), torch::kBFloat16);
      loss = torch::mse_loss(model_(x), y);
    }
    scaler_.scale(loss).backward();
    scaler_.unscale_(sgd_);
    model_.clip_grad_norm_(1.0);
    scaler_.step(sgd_);
    scaler_.update();
  }

  void Save(attune::CheckpointWriter& checkpoint) {
    checkpoint.Write("model", *model_);
    checkpoint.Write("optimizer", sgd_, {.hyperparameters = true});
    checkpoint.Write("schedule", schedule_);
    checkpoint.Write("scaler", scaler_);
    checkpoint.Write("progress", attune::Config({{"samples", samples_}}));
  }

  void Load(const attune::CheckpointReader& checkpoint) {
    checkpoint.Read("model", *model_);
    checkpoint.Read("optimizer", sgd_);
    checkpoint.Read("schedule", schedule_);
    checkpoint.Read("scaler", scaler_);
    samples_ = checkpoint.ReadConfig("progress").Int("samples");
  }

  double Collect() {
    at::Tensor seen = torch::tensor({context_.rank() + 1.0});
    attune::AllReduce(context_, seen, attune::ReduceOp::kSum,
                      {.timeout = std::chrono::seconds(60)});
    const at::Tensor of_all = attune::AllGather(context_, seen);  // [world_size, 1]
    const attune::Config chosen = attune::BroadcastObject(context_, context_.config());
    attune::Barrier(context_);
    return of_all.sum().item<double>() + static_cast<double>(chosen.values().size());
  }

 private:
  attune::Context& context_;
  attune::DistributedModel<torch::nn::Linear> model_;
  torch::optim::SGD sgd_;
  torch::optim::StepLR schedule_{sgd_, /*step_size=*/10};
  attune::GradScaler scaler_;
  std::int64_t samples_ = 0;
};

void Initialise(const attune::RankInfo& rank) {
  if (rank.device.is_cuda()) setenv("NCCL_SOCKET_IFNAME", "eth1", /*overwrite=*/0);
  std::srand(static_cast<unsigned>(rank.seed + rank.rank));
}

void Prepare(const std::filesystem::path& file) { std::ofstream(file) << "prepared"; }

void PrepareOnce(const std::filesystem::path& folder) {
  const attune::FileLock lock(folder / "prepared.lock", std::chrono::minutes(10));
  if (!std::filesystem::exists(folder / "prepared")) Prepare(folder / "prepared");
}

// The hash of "hello\n".
constexpr const char* kSha256 = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";

void Fetch(attune::Context& context, const std::string& url, const std::filesystem::path& folder) {
  attune::Download(context, url, kSha256, folder / "points.csv");
}

}  // namespace

namespace gang {

void Files(attune::Context& context) {
  const std::filesystem::path folder = context.config().Text("folder");
  PrepareOnce(folder);
  Fetch(context, "file://" + (folder / "hello").string(), folder);
  std::ignore = context.Report({});
}

int Hooked(int argc, char** argv) {
  return attune::Main<Fit>(argc, argv, {.initialization_hook = Initialise});
}

void Docs(attune::Context& context) {
  Thorough thorough(context);
  const at::Tensor x = torch::ones({4, 2});
  thorough.LogLoss(x.sum(), /*batch=*/25);
  thorough.Accumulate({x, x * 2});
  thorough.MixedPrecision(x, torch::zeros({4, 1}));
  thorough.Collect();
  const auto folder = std::filesystem::temp_directory_path() / c10::str("docs-", getpid());
  attune::CheckpointWriter writer(folder, /*step=*/1, /*attempt=*/1, /*world_size=*/1);
  thorough.Save(writer);
  thorough.Load(attune::CheckpointReader(writer.Commit().path));
  std::filesystem::remove_all(folder);
  BatchNorms(context);
  Gan(context).TrainGenerator(x);
  Fit fit;
  attune::trainable::TrainByStep(context, fit, {});
}

}  // namespace gang
