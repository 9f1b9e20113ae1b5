// The program that the gangs of the tests run. `mode` selects what a step does. Properties of a
// step across ranks are reported as metrics.

#include <attune/attune.h>
#include <fcntl.h>
#include <torch/nn.h>
#include <torch/optim.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>

#include "tests/unit/trainable/program/gang_modes.h"

namespace {

namespace nn = torch::nn;

using Model = attune::DistributedModel<nn::SequentialImpl>;

constexpr std::int64_t kInputs = 16;
constexpr std::int64_t kSamples = 512;
constexpr std::int64_t kGlobalBatch = 128;

// A result type of forward() that the SDK does not know.
struct Heads {
  torch::Tensor mean;
  torch::Tensor variance;
};

struct TwoHeadsImpl : nn::Module {
  TwoHeadsImpl()
      : mean(register_module("mean", nn::Linear(kInputs, 1))),
        variance(register_module("variance", nn::Linear(kInputs, 1))) {}
  Heads forward(const torch::Tensor& x) { return {mean(x), variance(x)}; }
  nn::Linear mean;
  nn::Linear variance;
};
TORCH_MODULE(TwoHeads);

// A model whose layers are not registered in the order of backward.
struct CrossedImpl : nn::Module {
  CrossedImpl()
      : last(register_module("last", nn::Linear(32, 1))),
        first(register_module("first", nn::Linear(kInputs, 32))) {}
  torch::Tensor forward(const torch::Tensor& x) {
    return last(torch::relu(torch::dropout(first(x), 0.2, is_training())));
  }
  nn::Linear last;
  nn::Linear first;
};
TORCH_MODULE(Crossed);

// An object whose destructor never returns.
struct Blocker {
  ~Blocker() {
    std::cout << "destroyed" << std::endl;
    while (true) pause();
  }
};

std::string ProgramPath() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

void Shell(const std::string& command) {
  const int status = std::system(command.c_str());
  std::cout << "shell said " << status << std::endl;
}

// Whether the mode needs no model.
bool OnlyCounts(const std::string& mode) {
  static const std::set<std::string> modes{"count",   "throws", "killed",    "hangs", "stops",
                                           "refused", "blocks", "beats",     "exits", "forks",
                                           "hook",    "nested", "hook_fails"};
  return modes.contains(mode);
}

class Gang : public attune::DistributedTrainable {
 public:
  void Setup(const attune::Config& config) override {
    mode_ = config.TextOr("mode", "count");
    const char* mark = std::getenv("GANG_PROGRAM_MARK");
    const char* removed = std::getenv("GANG_PROGRAM_REMOVED");
    std::cout << "in " << std::filesystem::current_path().string() << ", mark "
              << (mark == nullptr ? "none" : mark) << (removed == nullptr ? "" : ", not removed")
              << std::endl;
    std::cout << "channel: " << (std::getenv("ATTUNE_CHANNEL_FD") ? "set" : "unset") << std::endl;
    std::cout << "cgroup: " << (std::getenv("ATTUNE_CGROUP") ? "set" : "unset") << std::endl;
    // The process keeps the standard output open, so a reader notices its end.
    if (std::getenv("GANG_PROGRAM_LEAVES")) Shell("env -i setsid sleep 1000 &");
    if (mode_ == "nested") Shell(ProgramPath() + " --max-step 1 --config mode=count");
    if (mode_ == "beats") context().Heartbeat(std::chrono::hours(2));
    if (mode_ == "week") {
      context().Heartbeat(std::chrono::days(7));
      context().Heartbeat(std::chrono::days(7) + std::chrono::milliseconds(1));
    }
    if (mode_ == "hook") std::cout << "threads: " << at::get_num_threads() << std::endl;
    if (mode_ == "setup_fails") throw std::runtime_error("no dataset /data/none");
    if (OnlyCounts(mode_)) return;

    // Weights differ between ranks, so only PrepareModel can make them equal.
    if (mode_ != "follow") torch::manual_seed(context().rank() + 1);
    nn::Sequential net;
    if (mode_ == "overlap") {
      for (int i = 0; i < 6; ++i) net->push_back(nn::Linear(512, 512));
    } else if (mode_.starts_with("train")) {
      net->push_back(Crossed());
    } else {
      net->push_back(nn::Linear(kInputs, 32));
      if (mode_ == "buffers") net->push_back(nn::BatchNorm1d(32));
      net->push_back(nn::ReLU());
      net->push_back(nn::Linear(32, 1));
    }
    if (mode_ == "frozen") {
      for (auto& parameter : net->parameters()) parameter.set_requires_grad(false);
    }
    attune::DistributedModelOptions options;
    options.static_graph = mode_ == "train_static";
    if (mode_ == "overlap") options.bucket_bytes = options.first_bucket_bytes = 1 << 20;
    model_ = context().PrepareModel(net, options);
    if (mode_ == "struct") heads_ = context().PrepareModel(TwoHeads());
    optimizer_.emplace(model_->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
    sampler_ = context().PrepareSampler(kSamples);

    const auto generator = at::detail::createCPUGenerator(/*seed=*/99);
    inputs_ = torch::randn({kSamples, mode_ == "overlap" ? 512 : kInputs}, generator);
    targets_ = inputs_.slice(1, 0, 3).sum(1);
  }

  attune::Metrics Step() override {
    const std::int64_t step = context().step() + 1;
    if (mode_ == "throws" && context().rank() == 1 && step == 2) {
      throw std::runtime_error("a teapot");
    }
    if (mode_ == "killed" && context().rank() == 1 && step == 2) raise(SIGKILL);
    if (mode_ == "hangs") {
      std::cout << "hanging" << std::endl;
      pause();
    }
    if (mode_ == "refused" && context().rank() == 1 && step == 2) {
      throw std::runtime_error("S3: Connection refused");
    }
    if (mode_ == "forks") {
      if (fork() == 0) {
        setpgid(0, 0);
        signal(SIGALRM, SIG_DFL);
        alarm(20);  // it holds the channel, and no other process ends it
        dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
        dup2(STDOUT_FILENO, STDERR_FILENO);
        while (true) pause();
      }
      throw std::runtime_error("forked");
    }
    if (mode_ == "blocks") {
      const Blocker blocker;
      throw std::runtime_error("the cause");
    }
    if (mode_ == "stops" && step == 3) context().Stop();
    if (mode_ == "exits" && step == 100) std::exit(0);  // directly after the report of step 99
    if (mode_ == "beats") {
      for (int i = 0; i < 1000; ++i) context().Heartbeat();
    }
    if (OnlyCounts(mode_)) return Count(step);
    if (mode_ == "busy") return Busy();
    if (mode_ == "frozen") return {{"spread", Spread(Weights())}, {"mean", Frozen()}};
    if (mode_ == "struct") return WithAStruct();
    if (mode_ == "two_forwards") return TwoForwards();
    if (mode_ == "buffers") return Buffers();
    if (mode_ == "no_sync") return WithoutSync();
    if (mode_ == "overlap") return Overlap();
    const double loss = Train(NextBatch());
    return {{"loss", context().ReduceMean({{"loss", loss}}).at("loss")},
            {"hash", gang::Hash(Weights())},
            {"spread", Spread(Weights())}};
  }

  void Save(attune::CheckpointWriter& checkpoint) override {
    if (OnlyCounts(mode_)) return checkpoint.WriteText("count", std::to_string(context().step()));
    checkpoint.Write("model", *model_);
    checkpoint.Write("optimizer", *optimizer_);
  }

  void Load(const attune::CheckpointReader& checkpoint) override {
    if (OnlyCounts(mode_)) {
      std::cout << "resumed: count " << checkpoint.ReadText("count") << std::endl;
      return;
    }
    checkpoint.Read("model", *model_);
    checkpoint.Read("optimizer", *optimizer_);
  }

  ~Gang() override {
    std::cout << "left: rank " << context().rank() << ", step " << context().step() << std::endl;
  }

 private:
  attune::Metrics Count(std::int64_t step) {
    return {{"step", static_cast<double>(step)},
            {"thirds", static_cast<double>(step) / 3},
            {"time", static_cast<double>(context().time())},
            {"ranks", context().ReduceSum({{"ranks", 1.0}}).at("ranks")},
            {"args", static_cast<double>(context().args().size())}};
  }

  std::vector<std::int64_t> NextBatch() {
    const std::int64_t share = kGlobalBatch / context().world_size();
    return sampler_->Take(context().step() * share * context().world_size(), share);
  }

  torch::Tensor Loss(const std::vector<std::int64_t>& samples) {
    const auto index = torch::tensor(samples, torch::kLong);
    const auto output = model_(inputs_.index_select(0, index)).reshape({-1});
    return torch::mse_loss(output.slice(0, 0, index.size(0)), targets_.index_select(0, index));
  }

  double Train(const std::vector<std::int64_t>& samples) {
    optimizer_->zero_grad();
    const auto loss = Loss(samples);
    loss.backward();
    optimizer_->step();
    return loss.item<double>();
  }

  // Batch norm gets different data on each rank.
  attune::Metrics Buffers() {
    const double weights_at_start = Spread(Weights());
    Train(NextBatch());
    const double before = Spread(RunningStatistics());
    model_.eval();
    const double after = Spread(RunningStatistics());
    model_.train();
    return {{"weights_at_start", weights_at_start}, {"before", before}, {"after", after}};
  }

  attune::Metrics WithoutSync() {
    optimizer_->zero_grad();
    double local = 0;
    {
      const attune::NoSync local_only = model_.no_sync();
      Loss(NextBatch()).backward();
      local = Spread(Gradients());
    }
    const auto accumulated = Gradients();
    Loss(NextBatch()).backward();
    const double synchronised = Spread(Gradients());
    // Uses the same batch twice: the mean over ranks of twice each rank's gradient.
    auto mean = accumulated.clone();
    std::vector<at::Tensor> tensors{mean};
    context().process_group().allreduce(tensors)->wait();
    const double error =
        (Gradients() - mean * 2 / context().world_size()).abs().max().item<double>();
    return {{"local", local}, {"synchronised", synchronised}, {"error", error}};
  }

  // Runs only forwards, for longer than two heartbeat intervals.
  attune::Metrics Busy() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(2200);
    const at::NoGradGuard no_grad;
    while (std::chrono::steady_clock::now() < end) model_(inputs_);
    return {};
  }

  double Frozen() { return model_(inputs_).mean().item<double>(); }

  attune::Metrics WithAStruct() {
    const Heads heads = heads_(inputs_);
    (heads.mean.mean() + heads.variance.square().mean() * (context().rank() + 1)).backward();
    return {{"spread", Spread(heads_->variance->weight.grad())}};
  }

  // Computes the same two losses twice: one after the other, and with both forwards first.
  attune::Metrics TwoForwards() {
    const auto first = NextBatch();
    const auto second = sampler_->Take(context().step() * 2 + 7, 32);
    optimizer_->zero_grad();
    Loss(first).backward();
    Loss(second).backward();
    const auto wanted = Gradients();
    optimizer_->zero_grad();
    const auto a = Loss(first);
    const auto b = Loss(second);
    a.backward();
    b.backward();
    return {{"spread", Spread(Gradients())},
            {"error", (Gradients() - wanted).abs().max().item<double>()}};
  }

  attune::Metrics Overlap() {
    for (int i = 0; i < 4; ++i) {
      optimizer_->zero_grad();
      model_(inputs_).mean().backward();
      optimizer_->step();
    }
    const attune::GradientSyncTimes times = model_.sync_times();
    return {{"backward", times.backward},
            {"communication", times.communication},
            {"overlap", times.overlap}};
  }

  static torch::Tensor Flat(const std::vector<torch::Tensor>& tensors) {
    std::vector<torch::Tensor> flat;
    for (const auto& tensor : tensors) flat.push_back(tensor.detach().reshape({-1}));
    return torch::cat(flat);
  }

  torch::Tensor Weights() const { return Flat(model_->parameters()); }

  torch::Tensor Gradients() const {
    std::vector<torch::Tensor> gradients;
    for (const auto& parameter : model_->parameters()) gradients.push_back(parameter.grad());
    return Flat(gradients).clone();
  }

  torch::Tensor RunningStatistics() const {
    return Flat(
        {model_->named_buffers()["1.running_mean"], model_->named_buffers()["1.running_var"]});
  }

  // Returns 0 exactly if all ranks have the same bits.
  double Spread(const torch::Tensor& floats) {
    const double hash = gang::Hash(floats);
    const auto sum = context().ReduceSum({{"hash", hash}, {"square", hash * hash}});
    return context().world_size() * sum.at("square") - sum.at("hash") * sum.at("hash");
  }

  std::string mode_;
  Model model_;
  attune::DistributedModel<TwoHeadsImpl> heads_;
  std::optional<torch::optim::SGD> optimizer_;
  std::optional<attune::DistributedSampler> sampler_;
  torch::Tensor inputs_;
  torch::Tensor targets_;
};

// The program as a training function: counts to three, unless it must leave.
void CountToThree(attune::Context& context) {
  while (context.step() < 3) {
    if (!context.Report({{"step", static_cast<double>(context.step() + 1)}})) return;
  }
}

void Initialise(const attune::RankInfo& rank) {
  const std::string mode = rank.config.TextOr("mode", "");
  if (mode == "hook_fails" && rank.rank == rank.world_size - 1) {
    throw std::runtime_error("no interface eth7");
  }
  if (mode != "hook") return;
  setenv("GLOO_SOCKET_IFNAME", "lo", 1);
  at::set_num_threads(3);
  std::cout << "hook: rank " << rank.rank << " of " << rank.world_size << ", local "
            << rank.local_rank << " of " << rank.local_world_size << ", on " << rank.device
            << ", seed " << rank.seed << ", args " << rank.args.size() << std::endl;
}

class Lonely : public attune::Trainable {
  void Setup(const attune::Config&) override {}
  attune::Metrics Step() override { return {{"x", 1}}; }
  void Save(attune::CheckpointWriter&) override {}
  void Load(const attune::CheckpointReader&) override {}
};

}  // namespace

int main(int argc, char** argv) {
  if (std::getenv("GANG_PROGRAM_TALKS")) std::cout << "before Main\n";  // without a flush
  const char* form = std::getenv("GANG_PROGRAM_FORM");
  if (form == nullptr) return attune::Main<Gang>(argc, argv, {.initialization_hook = Initialise});
  if (form == std::string("hooked")) return gang::Hooked(argc, argv);
  if (form == std::string("trainer")) return gang::Trainer(argc, argv);
  if (form == std::string("tuned_trainer")) return gang::TunedTrainer(argc, argv);
  if (form == std::string("resized_trial")) return gang::ResizedTrial(argc, argv);
  if (form == std::string("one_after_another")) return gang::RunGangsInSequence();
  static const std::map<std::string, void (*)(attune::Context&)> functions{
      {"checkpoints", gang::Checkpoints},
      {"collectives", gang::Collectives},
      {"docs", gang::Docs},
      {"draws", gang::Draws},
      {"exchange", gang::Exchange},
      {"files", gang::Files},
      {"function", CountToThree},
      {"gradients", gang::Gradients},
      {"loader", gang::Loader},
      {"norms", gang::Norms},
  };
  const auto function = functions.find(form);
  if (function != functions.end()) return attune::Main(argc, argv, function->second);
  if (form == std::string("split")) return gang::MainOfSplit(argc, argv);
  return attune::Main<Lonely>(argc, argv);
}
