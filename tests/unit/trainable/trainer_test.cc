// attune::TorchTrainer in a program that drives workers from its own main().

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

// Returns the text after the word at the beginning of a line.
std::string TextAfter(const std::string& output, const std::string& word) {
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

// Workers are killed during setup, in the first collective, in epochs, and between epochs.
TEST(TorchTrainer, KilledWorkersDoNotChangeTheWeights) {
  for (const std::string workers : {"2", "3"}) {
    const std::string weights = TextAfter(Drive({"plain", workers, "6"}).output, "weights");
    ASSERT_NE(weights, "");
    int killed = 0;
    for (int seed = 1; killed < 25; ++seed) {
      const Ended ended = Drive({"plain", workers, "6", "8", std::to_string(seed)});
      ASSERT_EQ(ended.exit_code, 0) << ended.output;
      EXPECT_EQ(TextAfter(ended.output, "weights"), weights) << ended.output;
      killed += std::stoi(TextAfter(ended.output, "killed"));
    }
  }
}

TEST(TorchTrainer, ContinuesWithAllAvailableWorkers) {
  const Ended ended = Drive({"resized"});
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  // Each epoch visits each sample once: means of 0..239 and of their squares.
  const std::string each = "places 119.5  squares 19080.2";
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("epoch 1 of 4 workers, 240 samples, retries none: " + each),
                    ContainsRegex("epoch 2 of 2 workers, 240 samples, retries [a-z]+: " + each),
                    HasSubstr("epoch 3 of 2 workers, 240 samples, retries none: " + each),
                    HasSubstr("epoch 4 of 4 workers, 240 samples, retries none: " + each),
                    HasSubstr("batches 20, lr 0.05")))
      << ended.output;
}

TEST(TorchTrainer, ScalesBatchAndLearningRateOnRequest) {
  const Ended ended = Drive({"resized", "scales"});
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, ContainsRegex("batches 40, lr 0.025\n(.*\n)*.*batches 20, lr 0.05\n"));
}

TEST(TorchTrainer, NamesAStoppedWorker) {
  const Ended ended = Drive({"stopped"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.output, AllOf(HasSubstr("error: worker 1 was silent "), HasSubstr("stopped")));
}

TEST(TorchTrainer, SavesLoadsAppliesAndReturnsTheModel) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "trainer_checkpoints";
  std::filesystem::remove_all(folder);
  const Ended ended = Drive({"everything", folder});
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("batch of 13 "), HasSubstr("2 workers"),
                                  HasSubstr("batches 5, workers 2, measured 1"),
                                  HasSubstr("rates 0.025 and 0.025"), HasSubstr("tensors alike 1"),
                                  HasSubstr("moved 1, back 1"), HasSubstr("other 1"),
                                  HasSubstr("as GetModel 1"), HasSubstr("shut down")));
  EXPECT_TRUE(std::filesystem::exists(folder / "step-1-attempt-1/model.safetensors"));
}

TEST(TorchTrainer, TrainsSeveralModelsAtOnce) {
  const Ended ended = Drive({"gan"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("epoch 1 of 2 workers, 240 samples, retries none: critic "),
                    HasSubstr("learnt 1, models [8, 4] [1, 8]"), HasSubstr("validation_function")));
}

TEST(TorchTrainer, ErrorsNameTheirCause) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"model", "exit code 1: TorchTrainer: the model "},
      {"data", "error: worker 1 failed: exit code 1: no such disk"},
      {"loss", "[6] of Float"},
      {"batch", "error: TorchTrainer: batch_size: 1 "},
      {"seed", "error: TorchTrainer: seed: 9007199254740992 "},
      {"gpu", "error: TorchTrainer: num_workers: 100 with use_gpu"},
      {"backend", "error: TorchTrainer: backend: \"mpi\""},
      {"room", "min_workers is 2"},
      {"unkept", " options.checkpoint "},
      {"unkept", "load_state_dict() or Load()"},
      {"leaves", " code 0"}};
  for (const auto& [how, what] : cases) {
    const Ended ended = Drive({"wrong", how});
    EXPECT_EQ(ended.exit_code, 1) << how << ": " << ended.output;
    EXPECT_THAT(ended.output, HasSubstr(what)) << how;
  }
}

TEST(TorchTrainer, NoProcessOutlivesAKilledDriver) {
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
  // RunByHand() returns after every process that held the output has ended, so the workers have
  // ended too.
  for (const pid_t pid : workers) EXPECT_TRUE(ReadProcess(pid).is_dead);
  EXPECT_LT(ended.took, std::chrono::seconds(15));
}

TEST(TorchTrainer, TrainsTheSameAsATrial) {
  const Ended trial = RunByHand({"--workers", "2", "--max-step", "2", "--seed", "7"},
                                {{"GANG_PROGRAM_FORM", "tuned_trainer"}});
  ASSERT_EQ(trial.exit_code, 0) << trial.output;
  const Ended driven = Drive({"plain", "2", "2"});
  std::smatch second;
  const std::regex loss("epoch 2 of 2 workers, 240 samples, retries none: (train_loss [0-9.e-]+)");
  ASSERT_TRUE(std::regex_search(driven.output, second, loss)) << driven.output;
  EXPECT_THAT(trial.output, AllOf(HasSubstr("step 2  " + second[1].str()), HasSubstr("val_loss")));
}

// This happens when population-based training clones a trial and changes its configuration.
TEST(TorchTrainer, AClonedTrialUsesTheRatesOfItsConfiguration) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "tuned";
  std::filesystem::remove_all(folder);
  const Environment tuned = {{"GANG_PROGRAM_FORM", "tuned_trainer"}};
  const auto run = [&](std::vector<std::string> args) {
    args.insert(args.end(), {"--workers", "1"});
    const Ended ended = RunByHand(args, tuned);
    EXPECT_EQ(ended.exit_code, 0) << ended.output;
    return TextAfter(ended.output, "step 2 ");
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

// A trial with batch size and learning rate for four workers. Each attempt runs one step.
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
    return TextAfter(ended.output, "step " + std::to_string(step));
  }

 private:
  const std::filesystem::path folder_ = std::filesystem::path(::testing::TempDir()) / "resized";
};

// This happens when an elastic gang of a sweep shrinks and grows.
TEST_F(ResizedTrial, ScalesBatchAndLearningRate) {
  EXPECT_THAT(Run(4, 1), AllOf(HasSubstr("rate 0.05"), HasSubstr("share 3")));
  EXPECT_THAT(Run(2, 2), AllOf(HasSubstr("rate 0.025"), HasSubstr("share 3")));
  EXPECT_THAT(Run(4, 3), AllOf(HasSubstr("rate 0.05"), HasSubstr("share 3")));
}

// This happens when population-based training changes the batch size.
TEST_F(ResizedTrial, ADifferentBatchSizeKeepsItsConfiguredLearningRate) {
  EXPECT_THAT(Run(2, 1, "12"), AllOf(HasSubstr("rate 0.025"), HasSubstr("share 3")));
  EXPECT_THAT(Run(2, 2, "24"), AllOf(HasSubstr("rate 0.025"), HasSubstr("share 6")));
}

TEST(Init, RefusesToRunUnderAnExecutor) {
  const Ended ended = RunByHand({"plain", "1", "1"},
                                {{"GANG_PROGRAM_FORM", "trainer"}, {"ATTUNE_CHANNEL_FD", "0"}});
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_THAT(ended.output, HasSubstr("with attune::AsTrainable"));
}

}  // namespace
}  // namespace attune::inline sdk::trainable::testing
