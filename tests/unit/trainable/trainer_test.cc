// A program's own main() as the driver of workers: attune::TorchTrainer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "system/processes.h"
#include "tests/unit/trainable/process.h"

namespace attune::inline sdk::trainable::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

Ended Drive(const std::vector<std::string>& args) {
  return RunByHand(args, {{"GANG_PROGRAM_FORM", "trainer"}});
}

// What follows the word at the beginning of a line.
std::string After(const std::string& output, const std::string& word) {
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(word + " ")) return line.substr(word.size() + 1);
  }
  return "";
}

TEST(TorchTrainer, TrainsAndValidates) {
  const Ended ended = Drive({"plain", "2", "4"});
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("epoch 1 of 2 workers, 240 samples, retries none: train_loss "),
                    HasSubstr("epoch 4 of 2 workers, 60 samples, retries none: val_accuracy 0.")));
}

// Killed in setup, in the first collective, in the midst of epochs, between them.
TEST(TorchTrainer, WorkersThatAreKilledLeaveNoTraceInTheWeights) {
  for (const std::string workers : {"2", "3"}) {
    const std::string weights = After(Drive({"plain", workers, "6"}).output, "weights");
    ASSERT_NE(weights, "");
    int killed = 0;
    for (int seed = 1; killed < 25; ++seed) {
      const Ended ended = Drive({"plain", workers, "6", "8", std::to_string(seed)});
      ASSERT_EQ(ended.exit_code, 0) << ended.output;
      EXPECT_EQ(After(ended.output, "weights"), weights) << ended.output;
      killed += std::stoi(After(ended.output, "killed"));
    }
  }
}

TEST(TorchTrainer, GoesOnWithAsManyWorkersAsThereIsRoomFor) {
  const Ended ended = Drive({"resized"});
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  // Each sample once an epoch: means of 0..239 and of their squares.
  const std::string each = "places 119.5  squares 19080.2";
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("epoch 1 of 4 workers, 240 samples, retries none: " + each),
                    ContainsRegex("epoch 2 of 2 workers, 240 samples, retries [a-z]+: " + each),
                    HasSubstr("epoch 3 of 2 workers, 240 samples, retries none: " + each),
                    HasSubstr("epoch 4 of 4 workers, 240 samples, retries none: " + each),
                    HasSubstr("batches 20, lr 0.05")))
      << ended.output;
}

TEST(TorchTrainer, ScalesBatchAndLearningRateWhereAskedTo) {
  const Ended ended = Drive({"resized", "scales"});
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, ContainsRegex("batches 40, lr 0.025\n(.*\n)*.*batches 20, lr 0.05\n"));
}

TEST(TorchTrainer, AWorkerThatIsStoppedIsNamed) {
  const Ended ended = Drive({"stopped"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.output, AllOf(HasSubstr("error: worker 1 has said nothing for "),
                                  HasSubstr("its process is stopped")));
}

TEST(TorchTrainer, WhatItOffersBesides) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "trainer_checkpoints";
  std::filesystem::remove_all(folder);
  const Ended ended = Drive({"everything", folder});
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(
      ended.output,
      AllOf(HasSubstr("a batch of 13 does not divide by 2 workers"),
            HasSubstr("batches 5, workers 2, measured 1"), HasSubstr("rates 0.025 and 0.025"),
            HasSubstr("tensors alike 1"), HasSubstr("moved 1, back 1"), HasSubstr("other 1"),
            HasSubstr("as GetModel 1"), HasSubstr("TorchTrainer: is shut down")));
  EXPECT_TRUE(std::filesystem::exists(folder / "step-1-attempt-1/model.safetensors"));
}

TEST(TorchTrainer, SeveralModelsAtOnce) {
  const Ended ended = Drive({"gan"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("epoch 1 of 2 workers, 240 samples, retries none: critic "),
                    HasSubstr("learnt 1, models [8, 4] [1, 8]"),
                    HasSubstr("there is nothing to validate with")));
}

TEST(TorchTrainer, WhatIsWrongIsSaid) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"model", "failed: exit code 1: TorchTrainer: the model creator returned an empty model"},
      {"data", "error: worker 1 failed: exit code 1: no such disk"},
      {"loss", "the loss has to be one number, and is [6] of Float"},
      {"batch",
       "error: TorchTrainer: batch_size: 1 is that of all workers together, so at least "
       "num_workers, 2"},
      {"seed", "error: TorchTrainer: seed: 9007199254740992 has to be below 2^53"},
      {"gpu", "error: TorchTrainer: num_workers: 100 with use_gpu needs as many GPUs"},
      {"backend", "error: TorchTrainer: backend: \"mpi\" does not go with use_gpu = false"},
      {"room", "error: TorchTrainer: there is room for 1 workers, and min_workers is 2"},
      {"unkept", "what it had learnt is lost, since options.checkpoint is off"},
      {"unkept", "error: TorchTrainer: what it had learnt went with a worker"},
      {"leaves", "error: worker 1 failed: it has left, with exit code 0"}};
  for (const auto& [how, what] : cases) {
    const Ended ended = Drive({"wrong", how});
    EXPECT_EQ(ended.exit_code, 1) << how << ": " << ended.output;
    EXPECT_THAT(ended.output, HasSubstr(what)) << how;
  }
}

TEST(TorchTrainer, NothingOutlivesADriverThatIsKilled) {
  std::vector<pid_t> workers;
  const Ended ended = RunByHand({"endless"}, {{"GANG_PROGRAM_FORM", "trainer"}},
                                [&](pid_t driver, const std::string& line) {
                                  std::istringstream words(line);
                                  std::string word;
                                  words >> word;
                                  if (word != "workers") return;
                                  for (pid_t pid = 0; words >> pid;) workers.push_back(pid);
                                  kill(driver, SIGKILL);
                                });
  EXPECT_EQ(ended.exit_code, 128 + SIGKILL);
  ASSERT_EQ(workers.size(), 2u);
  // All that held its output has ended, so they have, before the driver's child.
  for (const pid_t pid : workers) EXPECT_TRUE(ReadProcess(pid).is_dead);
  EXPECT_LT(ended.took, std::chrono::seconds(15));
}

TEST(TorchTrainer, IsATrialAsWellAndTrainsTheSame) {
  const Ended trial = RunByHand({"--workers", "2", "--max-step", "2", "--seed", "7"},
                                {{"GANG_PROGRAM_FORM", "tuned_trainer"}});
  ASSERT_EQ(trial.exit_code, 0) << trial.output;
  const Ended driven = Drive({"plain", "2", "2"});
  std::smatch second;
  const std::regex loss("epoch 2 of 2 workers, 240 samples, retries none: (train_loss [0-9.e-]+)");
  ASSERT_TRUE(std::regex_search(driven.output, second, loss)) << driven.output;
  EXPECT_THAT(trial.output, AllOf(HasSubstr("step 2  " + second[1].str()), HasSubstr("val_loss")));
}

// As where population-based training goes on from another trial's checkpoint.
TEST(TorchTrainer, ATrialThatGoesOnWithAnotherConfigurationHasItsRates) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "tuned";
  std::filesystem::remove_all(folder);
  const Environment tuned = {{"GANG_PROGRAM_FORM", "tuned_trainer"}};
  const auto run = [&](std::vector<std::string> args) {
    args.insert(args.end(), {"--workers", "1"});
    const Ended ended = RunByHand(args, tuned);
    EXPECT_EQ(ended.exit_code, 0) << ended.output;
    return After(ended.output, "step 2 ");
  };
  run({"--config", "lr=0.05", "--max-step", "1", "--checkpoint-dir", folder});
  const std::string from = folder / "step-1-attempt-1";
  const auto loss = [&](const std::string& lr) {
    const std::string line = run({"--config", "lr=" + lr, "--max-step", "2", "--resume", from});
    return line.substr(0, line.find("val_accuracy"));
  };
  EXPECT_EQ(loss("0.05"), loss("0.05"));
  EXPECT_NE(loss("0.05"), loss("0.5"));
}

// A trial whose batch and learning rate are those of four workers, a step at a time.
class ResizedTrial : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(folder_); }

  std::string Run(int workers, int step, const std::string& batch_size = "12") {
    std::vector<std::string> args{"--workers",          std::to_string(workers),   "--max-step",
                                  std::to_string(step), "--checkpoint-dir",        folder_,
                                  "--config",           "batch_size=" + batch_size};
    const std::string before = std::to_string(step - 1);
    if (step > 1)
      args.insert(args.end(), {"--resume", folder_ / ("step-" + before + "-attempt-" + before)});
    const Ended ended = RunByHand(args, {{"GANG_PROGRAM_FORM", "resized_trial"}});
    EXPECT_EQ(ended.exit_code, 0) << ended.output;
    return After(ended.output, "step " + std::to_string(step));
  }

 private:
  const std::filesystem::path folder_ = std::filesystem::path(::testing::TempDir()) / "resized";
};

// As where an elastic gang of a sweep becomes smaller, and grows again.
TEST_F(ResizedTrial, ScalesBatchAndLearningRate) {
  EXPECT_THAT(Run(4, 1), AllOf(HasSubstr("rate 0.05"), HasSubstr("share 3")));
  EXPECT_THAT(Run(2, 2), AllOf(HasSubstr("rate 0.025"), HasSubstr("share 3")));
  EXPECT_THAT(Run(4, 3), AllOf(HasSubstr("rate 0.05"), HasSubstr("share 3")));
}

// As where a trial of a population goes on with numbers of its own.
TEST_F(ResizedTrial, WithAnotherBatchSizeInItsConfigurationKeepsTheLearningRateOfThat) {
  EXPECT_THAT(Run(2, 1, "12"), AllOf(HasSubstr("rate 0.025"), HasSubstr("share 3")));
  EXPECT_THAT(Run(2, 2, "24"), AllOf(HasSubstr("rate 0.025"), HasSubstr("share 6")));
}

TEST(Init, RefusesToBeARankOfAnExecutor) {
  const Ended ended = RunByHand({"plain", "1", "1"},
                                {{"GANG_PROGRAM_FORM", "trainer"}, {"ATTUNE_CHANNEL_FD", "0"}});
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_THAT(ended.output, HasSubstr("with attune::AsTrainable"));
}

}  // namespace
}  // namespace attune::inline sdk::trainable::testing
