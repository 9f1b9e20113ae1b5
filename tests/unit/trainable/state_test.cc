// Restoring the state of models, optimizers, schedulers and generators from a checkpoint.

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <iostream>
#include <memory>

#include "attune/checkpoint.h"
#include "attune/error.h"
#include "tests/unit/trainable/checkpoint_folder.h"
#include "trainable/checkpoints/optimizer_state.h"
#include "trainable/checkpoints/scheduler_state.h"
#include "trainable/checkpoints/state_dict.h"

namespace attune::inline sdk::trainable {

// Runs `work` in a process with a limit of `bytes` for its own memory. Returns 0 if it succeeded.
int WithMemory(std::size_t bytes, const std::function<void()>& work) {
  const pid_t pid = fork();
  if (pid == 0) {
    torch::set_num_threads(1);  // a forked process has no thread pool
    std::ifstream status("/proc/self/status");
    std::string word;
    std::size_t used_kib = 0;
    while (status >> word && word != "VmData:") {
    }
    status >> used_kib;
    const rlimit limit{used_kib * 1024 + bytes, RLIM_INFINITY};
    if (used_kib == 0 || setrlimit(RLIMIT_DATA, &limit) != 0) _exit(2);
    try {
      work();
    } catch (const std::exception& error) {
      std::cerr << error.what() << std::endl;
      _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return status;
}

namespace {

namespace fs = std::filesystem;
namespace nn = torch::nn;
namespace optim = torch::optim;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

TEST_F(CheckpointTest, LoadingNeedsNoCopyOfTheFile) {
  nn::Sequential model;
  for (int i = 0; i < 8; ++i) model->push_back(nn::Linear(1024, 2048));
  fs::path path;
  {
    CheckpointWriter writer(folder_, 1, 1, 1);
    writer.Write("model", *model);
    path = writer.Commit().path;
  }
  EXPECT_EQ(WithMemory(24 * kMiB, [&] { CheckpointReader(path).Read("model", *model); }), 0);
}

nn::Sequential Net(std::int64_t hidden = 4) {
  return nn::Sequential(nn::Linear(3, hidden), nn::BatchNorm1d(hidden), nn::Linear(hidden, 1));
}

TEST_F(CheckpointTest, RestoresParametersAndBuffersOfAModule) {
  nn::Sequential before = Net();
  before->forward(torch::randn({8, 3}));  // changes the running statistics
  CheckpointWriter writer(folder_, 1, 1, 1);
  writer.Write("model", *before);
  const CheckpointReader reader(writer.Commit().path);

  nn::Sequential after = Net();
  reader.Read("model", *after);
  const TensorMap expected = StateOf(*before);
  const TensorMap actual = StateOf(*after);
  ASSERT_THAT(expected, SizeIs(9));
  for (const auto& [name, tensor] : expected) EXPECT_TRUE(tensor.equal(actual.at(name))) << name;
}

TEST_F(CheckpointTest, RefusesAModuleOfAnotherShapeAndKeepsIt) {
  nn::Sequential small = Net(4);
  nn::Sequential large = Net(5);
  const auto before = large->parameters()[0].clone();
  EXPECT_THAT([&] { LoadState(*large, StateOf(*small), "model.safetensors"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("0.bias"), HasSubstr("[4]"), HasSubstr("[5]"))));
  EXPECT_TRUE(before.equal(large->parameters()[0]));
}

using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(std::vector<torch::Tensor>)>;

class OptimizerState : public CheckpointTest,
                       public testing::WithParamInterface<std::pair<const char*, MakeOptimizer>> {};

void Train(nn::Sequential& net, optim::Optimizer& optimizer, int steps) {
  for (int i = 0; i < steps; ++i) {
    optimizer.step([&] {
      optimizer.zero_grad();
      const auto x = torch::arange(12, torch::kFloat).reshape({4, 3});
      const auto loss = net->forward(x).square().mean();
      loss.backward();
      return loss;
    });
  }
}

TEST_P(OptimizerState, TrainingContinuesExactlyAsWithoutAStop) {
  nn::Sequential net = Net();
  const auto optimizer = GetParam().second(net->parameters());
  Train(net, *optimizer, 3);
  CheckpointWriter writer(folder_, 3, 1, 1);
  writer.Write("model", *net);
  writer.Write("optimizer", *optimizer);
  const CheckpointReader reader(writer.Commit().path);
  Train(net, *optimizer, 3);

  nn::Sequential resumed = Net();
  const auto resumed_optimizer = GetParam().second(resumed->parameters());
  reader.Read("model", *resumed);
  reader.Read("optimizer", *resumed_optimizer);
  Train(resumed, *resumed_optimizer, 3);
  for (const auto& [name, tensor] : StateOf(*net)) {
    EXPECT_TRUE(tensor.equal(StateOf(*resumed).at(name))) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, OptimizerState,
    testing::Values(
        std::pair("Sgd", MakeOptimizer([](auto p) {
                    return std::make_unique<optim::SGD>(p, optim::SGDOptions(0.01).momentum(0.9));
                  })),
        std::pair("Adam", MakeOptimizer([](auto p) {
                    return std::make_unique<optim::Adam>(p, optim::AdamOptions(0.01).amsgrad(true));
                  })),
        std::pair("AdamW", MakeOptimizer([](auto p) {
                    return std::make_unique<optim::AdamW>(p, optim::AdamWOptions(0.01));
                  })),
        std::pair("RmsProp", MakeOptimizer([](auto p) {
                    return std::make_unique<optim::RMSprop>(
                        p, optim::RMSpropOptions(0.01).momentum(0.9).centered(true));
                  })),
        std::pair("Adagrad", MakeOptimizer([](auto p) {
                    return std::make_unique<optim::Adagrad>(p, optim::AdagradOptions(0.01));
                  })),
        std::pair("Lbfgs", MakeOptimizer([](auto p) {
                    return std::make_unique<optim::LBFGS>(
                        p, optim::LBFGSOptions(0.01).max_iter(3).history_size(5));
                  })),
        std::pair("LbfgsWithLineSearch", MakeOptimizer([](auto p) {
                    return std::make_unique<optim::LBFGS>(
                        p, optim::LBFGSOptions(0.01).max_iter(2).line_search_fn("strong_wolfe"));
                  }))),
    [](const auto& test) { return test.param.first; });

TEST(OptimizerStateErrors, RefusesTheStateOfAnotherOptimizer) {
  nn::Sequential net = Net();
  optim::SGD sgd(net->parameters(), optim::SGDOptions(0.1).momentum(0.9));
  optim::AdamW adamw(net->parameters(), optim::AdamWOptions(0.1));
  Train(net, adamw, 1);
  EXPECT_THAT([&] { LoadState(sgd, StateOf(adamw), "optimizer.safetensors"); },
              ThrowsMessage<Error>(HasSubstr("exp_avg")));

  nn::Sequential other = Net(5);
  optim::AdamW mismatched(other->parameters(), optim::AdamWOptions(0.1));
  EXPECT_THAT([&] { LoadState(mismatched, StateOf(adamw), "optimizer.safetensors"); },
              ThrowsMessage<Error>(HasSubstr("must be [")));
}

TEST(LbfgsState, IsShortenedToTheHistorySizeOfTheOptions) {
  nn::Sequential net = Net();
  optim::LBFGS saved(net->parameters(), optim::LBFGSOptions(0.01).max_iter(4).history_size(5));
  Train(net, saved, 2);
  TensorMap state = StateOf(saved);
  ASSERT_EQ(state.at("0.ro").size(0), 5);

  optim::LBFGS shorter(net->parameters(), optim::LBFGSOptions(0.01).history_size(2));
  LoadState(shorter, state, "o");
  EXPECT_TRUE(StateOf(shorter).at("0.old_dirs").equal(state.at("0.old_dirs").slice(0, 3)));
  EXPECT_TRUE(StateOf(shorter).at("0.ro").equal(state.at("0.ro").slice(0, 3)));
  Train(net, shorter, 1);

  state["0.ro"] = state.at("0.ro").slice(0, 1);
  EXPECT_THAT([&] { LoadState(shorter, state, "o"); }, ThrowsMessage<Error>(HasSubstr("old_stps")));
}

class LearningRate : public CheckpointTest {
 protected:
  // Saves the optimizer with its hyperparameters, and the scheduler.
  template <typename Scheduler>
  CheckpointReader Saved(const optim::Optimizer& optimizer, const Scheduler& scheduler) const {
    CheckpointWriter writer(folder_, 1, 1, 1);
    writer.Write("optimizer", optimizer, {.hyperparameters = true});
    writer.Write("scheduler", scheduler);
    return CheckpointReader(writer.Commit().path);
  }
};

TEST_F(LearningRate, ContinuesAStepSchedule) {
  nn::Sequential net = Net();
  optim::SGD sgd(net->parameters(), optim::SGDOptions(0.8));
  optim::StepLR schedule(sgd, /*step_size=*/3, /*gamma=*/0.5);
  for (int i = 0; i < 4; ++i) schedule.step();
  const CheckpointReader reader = Saved(sgd, schedule);

  optim::SGD resumed_sgd(net->parameters(), optim::SGDOptions(0.8));
  optim::StepLR resumed(resumed_sgd, 3, 0.5);
  reader.Read("optimizer", resumed_sgd);
  reader.Read("scheduler", resumed);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(resumed_sgd.param_groups()[0].options().get_lr(),
              sgd.param_groups()[0].options().get_lr())
        << "after " << i << " steps";
    schedule.step();
    resumed.step();
  }
  EXPECT_EQ(sgd.param_groups()[0].options().get_lr(), 0.2);
}

TEST_F(LearningRate, ContinuesAPlateauSchedule) {
  nn::Sequential net = Net();
  const auto plateau = [](optim::Optimizer& of) {
    return optim::ReduceLROnPlateauScheduler(of, optim::ReduceLROnPlateauScheduler::min, 0.5F,
                                             /*patience=*/2);
  };
  optim::SGD sgd(net->parameters(), optim::SGDOptions(0.8));
  auto schedule = plateau(sgd);
  schedule.step(1);
  schedule.step(2);  // the first of three steps without an improvement
  const CheckpointReader reader = Saved(sgd, schedule);

  optim::SGD resumed_sgd(net->parameters(), optim::SGDOptions(0.8));
  auto resumed = plateau(resumed_sgd);
  reader.Read("optimizer", resumed_sgd);
  reader.Read("scheduler", resumed);
  for (const float loss : {2.F, 2.F, 0.5F, 2.F, 2.F, 2.F}) {
    schedule.step(loss);
    resumed.step(loss);
    EXPECT_EQ(resumed_sgd.param_groups()[0].options().get_lr(),
              sgd.param_groups()[0].options().get_lr());
  }
  EXPECT_EQ(sgd.param_groups()[0].options().get_lr(), 0.2);
}

TEST_F(LearningRate, RefusesAScheduleOfAnotherKind) {
  nn::Sequential net = Net();
  optim::SGD sgd(net->parameters(), optim::SGDOptions(0.8));
  optim::StepLR step(sgd, 3, 0.5);
  optim::ReduceLROnPlateauScheduler plateau(sgd);
  EXPECT_THAT([&] { LoadState(plateau, StateOf(step), "scheduler.safetensors"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("scheduler.safetensors"), HasSubstr("best"))));
}

TEST_P(OptimizerState, RestoresHyperparametersOnlyOnRequest) {
  nn::Sequential net = Net();
  const auto saved = GetParam().second(net->parameters());
  saved->param_groups()[0].options().set_lr(0.5);
  const auto kept = GetParam().second(net->parameters());
  LoadState(*kept, StateOf(*saved, /*hyperparameters=*/false), "o");
  EXPECT_EQ(kept->param_groups()[0].options().get_lr(), 0.01);

  const TensorMap state = StateOf(*saved, /*hyperparameters=*/true);
  const auto restored = GetParam().second(net->parameters());
  LoadState(*restored, state, "o");
  EXPECT_EQ(restored->param_groups()[0].options().get_lr(), 0.5);
  const TensorMap again = StateOf(*restored, true);
  ASSERT_THAT(again, SizeIs(state.size()));
  for (const auto& [name, tensor] : state) EXPECT_TRUE(tensor.equal(again.at(name))) << name;
}

TEST(OptimizerStateErrors, RefusesHyperparametersOfAnotherOptimizerWithoutChanges) {
  nn::Sequential net = Net();
  optim::SGD sgd(net->parameters(), optim::SGDOptions(0.1));
  optim::AdamW adamw(net->parameters(), optim::AdamWOptions(0.2));
  EXPECT_THAT([&] { LoadState(sgd, StateOf(adamw, true), "optimizer.safetensors"); },
              ThrowsMessage<Error>(HasSubstr("group.0.momentum")));
  EXPECT_EQ(sgd.param_groups()[0].options().get_lr(), 0.1);
}

TEST_F(CheckpointTest, AGeneratorContinuesItsSequence) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(7);
  torch::rand({3}, generator);
  CheckpointWriter writer(folder_, 1, 1, 1);
  writer.Write("random", generator);
  const CheckpointReader reader(writer.Commit().path);
  at::Generator other = at::make_generator<at::CPUGeneratorImpl>(8);
  reader.Read("random", other);
  EXPECT_TRUE(torch::rand({3}, generator).equal(torch::rand({3}, other)));
}

// A stateful type of the program.
struct Average {
  torch::Tensor value = torch::zeros({2});
  TensorMap state_dict() const { return {{"value", value}}; }
  void load_state_dict(const TensorMap& state) { value = state.at("value"); }
};

TEST_F(CheckpointTest, RestoresStatefulObjectsAndValues) {
  Average average;
  average.value = torch::ones({2});
  CheckpointWriter writer(folder_, 1, 1, 1);
  writer.Write("average", average);
  writer.Write("progress", Config({{"epoch", std::int64_t{3}}, {"best", 0.5}}));
  const CheckpointReader reader(writer.Commit().path);
  Average again;
  reader.Read("average", again);
  EXPECT_TRUE(again.value.equal(torch::ones({2})));
  EXPECT_EQ(reader.ReadConfig("progress").Int("epoch"), 3);
}

}  // namespace
}  // namespace attune::inline sdk::trainable
