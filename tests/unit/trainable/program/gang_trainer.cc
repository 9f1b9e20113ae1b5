// Programs with a TorchTrainer: a driver and its workers.

#include <attune/torch_trainer.h>
#include <signal.h>
#include <torch/data/datasets/base.h>
#include <torch/data/example.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/loss.h>
#include <torch/optim/adam.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "system/processes.h"
#include "tests/unit/trainable/program/gang_modes.h"

namespace gang {
namespace {

namespace nn = torch::nn;
using attune::Config;
using attune::Creators;
using attune::TorchTrainer;
using attune::TorchTrainerOptions;
using attune::TrainerStats;

constexpr std::int64_t kSamples = 240;
constexpr std::int64_t kClasses = 3;

// A data set of points in three clusters. The first column identifies the sample.
class Clusters : public torch::data::datasets::BatchDataset<Clusters, torch::data::Example<>> {
 public:
  explicit Clusters(std::int64_t size, std::uint64_t seed) {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
    target_ = torch::arange(size) % kClasses;
    data_ = torch::randn({size, 8}, generator) + target_.unsqueeze(1).to(torch::kFloat);
    data_.select(1, 0).copy_(torch::arange(size) * 1e-3);
  }

  torch::data::Example<> get_batch(c10::ArrayRef<std::size_t> places) override {
    const at::Tensor rows = torch::tensor(std::vector<std::int64_t>(places.begin(), places.end()));
    return {data_.index_select(0, rows), target_.index_select(0, rows)};
  }
  std::optional<std::size_t> size() const override { return target_.size(0); }

 private:
  at::Tensor data_, target_;
};

class NetImpl : public nn::Module {
 public:
  explicit NetImpl(std::int64_t width)
      : layers_(nn::Linear(8, width), nn::BatchNorm1d(width), nn::Linear(width, kClasses)) {
    register_module("layers", layers_);
  }
  at::Tensor forward(const at::Tensor& data) { return layers_->forward(data); }

 private:
  nn::Sequential layers_;
};
TORCH_MODULE(Net);

Net CreateModel(const Config& config) { return Net(config.IntOr("width", 16)); }
attune::TrainerData<Clusters> CreateData(const Config& config) {
  if (config.TextOr("fails", "") == "data" && getenv("GANG_RANK_1") != nullptr) {
    throw std::runtime_error("no such disk");
  }
  return {Clusters(kSamples, 1), Clusters(kSamples / 4, 2)};
}
torch::optim::SGD CreateOptimizer(Net& net, const Config& config) {
  return torch::optim::SGD(net->parameters(),
                           torch::optim::SGDOptions(config.RealOr("lr", 0.05)).momentum(0.9));
}
nn::CrossEntropyLoss CreateLoss(const Config&) { return {}; }
torch::optim::StepLR CreateScheduler(torch::optim::SGD& sgd, const Config&) {
  return {sgd, /*step_size=*/2, /*gamma=*/0.5};
}
constexpr Creators kCreators{.model = CreateModel,
                             .data = CreateData,
                             .optimizer = CreateOptimizer,
                             .loss = CreateLoss,
                             .scheduler = CreateScheduler};

void Print(const TrainerStats& stats) {
  std::cout << "epoch " << stats.epoch << " of " << stats.num_workers << " workers, "
            << stats.samples << " samples, retries " << (stats.retries > 0 ? "some" : "none")
            << ": " << attune::ToText(stats.metrics) << std::endl;
}

double HashOf(const attune::TensorMap& state) {
  double hash = 0;
  for (const auto& [name, tensor] : state) {
    hash += Hash(tensor.to(torch::kFloat).contiguous());
  }
  return hash;
}

// Returns the processes that a launcher of this driver has forked.
std::vector<pid_t> Workers() {
  const auto parent = [](pid_t pid) { return attune::ReadProcess(pid).parent; };
  std::vector<pid_t> workers;
  for (const pid_t pid : attune::AllProcesses()) {
    const auto state = attune::ReadProcess(pid);
    if (!state.is_dead && state.parent > 1 && parent(parent(state.parent)) == getpid()) {
      workers.push_back(pid);
    }
  }
  return workers;
}

// Kills workers at random times until `kills` workers are dead.
class Killer {
 public:
  Killer(int kills, unsigned seed) : thread_([this, kills, seed] { Run(kills, seed); }) {}
  ~Killer() {
    stopped_ = true;
    thread_.join();
    std::cout << "killed " << killed_ << std::endl;
  }

 private:
  void Run(int kills, unsigned seed) {
    std::mt19937 random(seed);
    while (!stopped_ && killed_ < kills) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 120'000));
      const std::vector<pid_t> workers = Workers();
      if (stopped_ || workers.empty()) continue;
      if (kill(workers[random() % workers.size()], SIGKILL) == 0) ++killed_;
    }
  }

  std::atomic<bool> stopped_ = false;
  std::atomic<int> killed_ = 0;
  std::thread thread_;
};

// Arguments: plain WORKERS EPOCHS [KILLS SEED]
void Plain(const std::vector<std::string>& args) {
  std::optional<Killer> killer;
  if (args.size() > 3) killer.emplace(std::stoi(args[3]), std::stoi(args[4]));
  TorchTrainer trainer(
      kCreators,
      {.num_workers = std::stoi(args[1]), .batch_size = 12, .seed = 7, .max_retries = 1000});
  for (int epoch = 0; epoch < std::stoi(args[2]); ++epoch) Print(trainer.Train());
  Print(trainer.Validate());
  std::cout << "weights " << std::fixed << HashOf(trainer.state_dict()) << std::endl;
}

// Also records the index of each sample. The sums show whether a sample was left out or repeated.
constexpr auto kTrainWithPlaces = [](auto& training) {
  training.model().train();
  for (auto& batch : training.batches()) {
    training.TrainBatch(batch);
    const at::Tensor place = (batch.data.select(1, 0) * 1e3).round().to(torch::kDouble);
    training.Record("places", place.mean().template item<double>(), batch.data.size(0));
    training.Record("squares", place.square().mean().template item<double>(), batch.data.size(0));
  }
};

int available_workers = 4;

void Resized(const std::vector<std::string>& args) {
  const bool scales = args.size() > 1;
  if (scales) available_workers = 2;  // fewer than num_workers from the beginning
  TorchTrainer trainer(Creators{.model = CreateModel,
                                .data = CreateData,
                                .optimizer = CreateOptimizer,
                                .loss = CreateLoss,
                                .train_function = kTrainWithPlaces},
                       {.num_workers = 4,
                        .min_workers = 2,
                        .available_workers = [] { return available_workers; },
                        .resize_rule = scales ? attune::ResizeRule::kScaleWithWorkers
                                              : attune::ResizeRule::kKeepBatch,
                        .batch_size = 12});
  const std::vector<int> worker_counts = scales ? std::vector{2, 4} : std::vector{4, 2, 2, 4};
  for (const int next : worker_counts) {
    available_workers = next;
    if (next == 2 && trainer.num_workers() == 4) kill(Workers().front(), SIGKILL);
    const TrainerStats stats = trainer.Train();
    Print(stats);
    const double lr = trainer.ApplyAllWorkers([](auto& training) {
      return training.optimizer().param_groups()[0].options().get_lr();
    })[0];
    std::cout << "batches " << stats.batches << ", lr " << lr << std::endl;
  }
}

void Stopped() {
  TorchTrainer trainer(kCreators, {.num_workers = 2,
                                   .batch_size = 12,
                                   .max_retries = 0,
                                   .stall_timeout = std::chrono::seconds(3)});
  const auto pids = trainer.ApplyAllWorkers([](auto&) { return static_cast<double>(getpid()); });
  kill(static_cast<pid_t>(pids[1]), SIGSTOP);
  trainer.Train();
}

void Everything(const std::string& folder) {
  const TorchTrainerOptions options{.num_workers = 2,
                                    .batch_size = 13,
                                    .scheduler_step_freq = attune::SchedulerStep::kManual,
                                    .seed = 3};
  TorchTrainer trainer(kCreators, options);
  const TrainerStats stats =
      trainer.Train({.num_steps = 5, .profile = true, .reduce_results = false});
  std::cout << "batches " << stats.batches << ", workers " << stats.workers.size() << ", measured "
            << (stats.forward_seconds > 0 && stats.backward_seconds > 0 && stats.seconds > 0 &&
                stats.data_seconds > 0)
            << std::endl;
  for (int i = 0; i < 3; ++i) trainer.UpdateScheduler();
  const auto rates = trainer.ApplyAllWorkers(
      [](auto& training) { return training.optimizer().param_groups()[0].options().get_lr(); });
  std::cout << "rates " << rates[0] << " and " << rates[1] << std::endl;
  const auto sums_by_worker = trainer.ApplyAllWorkers([](auto& training) {
    std::map<std::string, at::Tensor> sums;
    for (const auto& parameter : training.model()->named_parameters()) {
      sums[parameter.key()] = parameter.value().sum();
    }
    return sums;
  });
  std::cout << "tensors alike " << std::ranges::all_of(sums_by_worker[0], [&](const auto& sum) {
    return sum.second.equal(sums_by_worker[1].at(sum.first));
  }) << std::endl;
  const attune::CheckpointInfo saved = trainer.Save(folder);
  Net net = trainer.GetModel();
  const double weights = HashOf(trainer.state_dict());
  trainer.Train();
  const bool moved = weights != HashOf(trainer.state_dict());
  trainer.Load(saved.path);
  std::cout << "moved " << moved << ", back " << (weights == HashOf(trainer.state_dict()))
            << std::endl;
  // Runs another trainer with other workers at the same time.
  TorchTrainer other(kCreators, {.num_workers = 1, .batch_size = 13, .seed = 3});
  other.load_state_dict(trainer.state_dict());
  std::cout << "other " << (weights == HashOf(other.state_dict())) << std::endl;
  net->eval();
  Clusters heaps(kSamples / 4, 2);
  std::vector<std::size_t> all(kSamples / 4);
  std::iota(all.begin(), all.end(), 0);
  const auto batch = heaps.get_batch(all);
  const double accuracy =
      net->forward(batch.data).argmax(1).eq(batch.target).to(torch::kDouble).mean().item<double>();
  std::cout << "as GetModel "
            << (std::abs(accuracy - other.Validate().metrics.at("val_accuracy")) < 1e-6)
            << std::endl;
  trainer.Shutdown(/*force=*/true);
  try {
    trainer.Train();
  } catch (const attune::Error& error) {
    std::cout << error.what() << std::endl;
  }
}

// Two models that are trained against each other.
void TrainGan() {
  using Pair = std::tuple<nn::Linear, nn::Linear>;
  TorchTrainer trainer(
      Creators{.model = [](const Config&) { return Pair(nn::Linear(4, 8), nn::Linear(8, 1)); },
               .data = [](const Config&) { return Clusters(kSamples, 1); },
               .optimizer =
                   [](Pair& models, const Config&) {
                     return std::tuple(torch::optim::Adam(std::get<0>(models)->parameters()),
                                       std::make_unique<torch::optim::SGD>(
                                           std::get<1>(models)->parameters(), 0.1));
                   },
               .loss = [](const Config&) { return nn::BCEWithLogitsLoss(); },
               .train_function =
                   [](auto& training) {
                     for (auto& batch : training.batches()) {
                       const auto n = batch.data.size(0);
                       auto& generator = training.template model<0>();
                       auto& critic = training.template model<1>();
                       const auto fake = generator(torch::randn({n, 4}));
                       training.template optimizer<1>().zero_grad();
                       const auto loss =
                           training.loss()(critic(batch.data), torch::ones({n, 1})) +
                           training.loss()(critic(fake.detach()), torch::zeros({n, 1}));
                       loss.backward();
                       training.template optimizer<1>().step();
                       training.template optimizer<0>().zero_grad();
                       const auto fooled = training.loss()(critic(fake), torch::ones({n, 1}));
                       fooled.backward();
                       training.template optimizer<0>().step();
                       training.Record("critic", loss, n);
                       training.Record("generator", fooled, n);
                     }
                   }},
      {.num_workers = 2, .batch_size = 24});
  const double before = HashOf(trainer.state_dict());
  Print(trainer.Train());
  const auto [generator, critic] = trainer.GetModel();
  std::cout << "learnt " << (before != HashOf(trainer.state_dict())) << ", models "
            << generator->weight.sizes() << " " << critic->weight.sizes() << std::endl;
  trainer.Validate();
}

void TrainWrongly(const std::string& how) {
  TorchTrainerOptions options{.num_workers = 2, .batch_size = 12};
  if (how == "model") {
    TorchTrainer(Creators{.model = [](const Config&) { return std::shared_ptr<NetImpl>(); },
                          .data = CreateData,
                          .optimizer =
                              [](std::shared_ptr<NetImpl>& net, const Config&) {
                                return torch::optim::SGD(net->parameters(), 0.1);
                              },
                          .loss = CreateLoss},
                 options);
  } else if (how == "data") {
    options.config = {{"fails", "data"}};
    options.initialization_hook = [](const attune::RankInfo& rank) {
      if (rank.rank == 1) setenv("GANG_RANK_1", "", 1);
    };
    TorchTrainer(kCreators, options);
  } else if (how == "loss") {
    TorchTrainer trainer(Creators{.model = CreateModel,
                                  .data = CreateData,
                                  .optimizer = CreateOptimizer,
                                  .loss =
                                      [](const Config&) {
                                        return nn::CrossEntropyLoss(
                                            nn::CrossEntropyLossOptions().reduction(torch::kNone));
                                      }},
                         options);
    trainer.Train();
  } else if (how == "batch") {
    options.config = {{"batch_size", 1}};
    TorchTrainer(kCreators, options);
  } else if (how == "seed") {
    options.seed = std::uint64_t{1} << 53;
    TorchTrainer(kCreators, options);
  } else if (how == "gpu") {
    options.num_workers = 100;
    options.batch_size = 1000;
    options.use_gpu = true;
    TorchTrainer(kCreators, options);
  } else if (how == "backend") {
    options.backend = "mpi";
    TorchTrainer(kCreators, options);
  } else if (how == "room") {
    options.available_workers = [] { return 1; };
    options.room_timeout = std::chrono::milliseconds(200);
    TorchTrainer(kCreators, options);
  } else if (how == "unkept") {
    options.checkpoint = false;
    TorchTrainer trainer(kCreators, options);
    trainer.Train();
    kill(Workers().front(), SIGKILL);
    try {
      trainer.Train();
    } catch (const attune::WorkerError& error) {
      std::cout << error.what() << std::endl;
    }
    trainer.state_dict();
  } else if (how == "leaves") {
    options.max_retries = 0;
    TorchTrainer trainer(kCreators, options);
    trainer.ApplyAllWorkers([](auto& training) {
      if (training.context().rank() == 1) _exit(0);
    });
  }
}

// Prints the pids of the workers, and never returns.
void Endless() {
  TorchTrainer trainer(kCreators, {.num_workers = 2, .batch_size = 12});
  if (fork() == 0) {
    // This process inherits every socket of the driver, and outlives it.
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    std::this_thread::sleep_for(std::chrono::seconds(20));
    _exit(0);
  }
  std::cout << "workers";
  for (const pid_t pid : Workers()) std::cout << " " << pid;
  std::cout << std::endl;
  while (true) trainer.Train();
}

}  // namespace

int Trainer(int argc, char** argv) {
  attune::Init(argc, argv);
  const std::vector<std::string> args(argv + 1, argv + argc);
  try {
    if (args[0] == "plain") Plain(args);
    if (args[0] == "resized") Resized(args);
    if (args[0] == "stopped") Stopped();
    if (args[0] == "everything") Everything(args[1]);
    if (args[0] == "gan") TrainGan();
    if (args[0] == "wrong") TrainWrongly(args[1]);
    if (args[0] == "endless") Endless();
  } catch (const attune::Error& error) {
    std::cout << "error: " << error.what() << std::endl;
    return 1;
  }
  return 0;
}

int TunedTrainer(int argc, char** argv) {
  return attune::Main(argc, argv, attune::AsTrainable(kCreators, {.batch_size = 12}));
}

int ResizedTrial(int argc, char** argv) {
  const auto train_with_sizes = [](auto& training) {
    for (auto& batch : training.batches()) {
      training.TrainBatch(batch);
      training.Record("share", static_cast<double>(batch.data.size(0)), 1);
      training.Record("rate", training.optimizer().param_groups()[0].options().get_lr(), 1);
    }
  };
  return attune::Main(argc, argv,
                      attune::AsTrainable(Creators{.model = CreateModel,
                                                   .data = CreateData,
                                                   .optimizer = CreateOptimizer,
                                                   .loss = CreateLoss,
                                                   .train_function = train_with_sizes},
                                          {.num_workers = 4,
                                           .resize_rule = attune::ResizeRule::kScaleWithWorkers,
                                           .batch_size = 12}));
}

}  // namespace gang
