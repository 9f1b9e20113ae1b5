#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/result.h"
#include "tests/unit/cli/command_line.h"
#include "tests/unit/cli/fake_server.h"

namespace attune::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class TrainCommand : public ::testing::Test {
 protected:
  TrainCommand() {
    host_.log_to = [](Output&, LogLevel) {};
    host_.start_server = [this](const ServeOptions& options) {
      started_ = options;
      return Result<std::unique_ptr<RunningServer>>(
          std::make_unique<FakeRunning>(server_.endpoint()));
    };
    server_.Answer("/sweeps", {{"sweeps", Json::array()}, {"next_page_token", ""}});
    server_.AnswerPost("/sweeps", SweepJson("s1", "running"), 201);
    TrialIs("running", "");
    server_.AnswerText("/sweeps/s1/trials/0/logs", "epoch 1\n",
                       {{"X-Log-Offset", "0"}, {"X-Log-Size", "8"}});
  }

  void TrialIs(const std::string& state, const std::string& reason) {
    Json trial = TrialJson(0, state);
    trial["reason"] = reason;
    trial["attempts"] = {rest::ToJson(rest::Attempt{.failure = reason + "\nepoch 1\nepoch 2"})};
    server_.Answer("/sweeps/s1", SweepJson("s1", state));
    server_.Answer("/sweeps/s1/trials",
                   {{"trials", {trial}}, {"next_page_token", ""}, {"seq", 9}, {"total_size", 1}});
    server_.Answer("/sweeps/s1/trials/0", trial_.value_or(trial));
  }

  void Ends(const std::string& state, const std::string& reason) {
    server_.OnStream([this, state, reason] {
      TrialIs(state, reason);
      server_.Tell("attempt_changed", {{"trial", 0}, {"attempt", 1}, {"state", "running"}});
      server_.Tell("sweep_changed", {{"state", state}, {"reason", reason}});
    });
  }

  void Serve() { server_.WriteTo(folder_.path()); }  // a server that runs on the data folder

  Ran Train(std::vector<std::string> flags = {}, std::vector<std::string> command = {"/bin/true"}) {
    std::vector<std::string> args = {"train", "--data-dir", folder_.path().string()};
    args.insert(args.end(), flags.begin(), flags.end());
    args.push_back("--");
    args.insert(args.end(), command.begin(), command.end());
    return RunAttune(args, host_, interrupt_);
  }

  ScratchFolder folder_;
  FakeServer server_;
  std::optional<ServeOptions> started_;
  std::optional<Json> trial_;  // replaces the default trial
  Interrupt interrupt_;
  Host host_;
};

TEST_F(TrainCommand, CreatesASweepWithOneTrial) {
  Serve();
  ASSERT_EQ(setenv("TRAIN_TEST_HERE", "a value that stays here", 1), 0);
  const Ran ran = Train({"--detach", "--workers", "16", "--gpus-per-worker", "1", "--steps", "90",
                         "-p", "lr=0.1", "--env", "A=b", "--env", "TRAIN_TEST_HERE", "--metric",
                         "accuracy", "--mode", "max", "--set", "resources.placement=spread"},
                        {"python3", "train.py", "--epochs", "90"});
  EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.err;
  EXPECT_EQ(ran.out, "s1/0\n");
  EXPECT_EQ(Json::parse(server_.last_body()),
            (Json{{"name", "train"},
                  {"command", {"python3", "train.py", "--epochs", "90"}},
                  {"metric", {{"name", "accuracy"}, {"mode", "max"}}},
                  {"parameters", {{"lr", {{"value", 0.1}}}}},
                  {"searcher", {{"name", "random"}}},
                  {"resources", {{"workers", 16}, {"gpus_per_worker", 1}, {"placement", "spread"}}},
                  {"failure", {{"max_failed_trials", 0}}},
                  {"stop", {{"max_trials", 1}}},
                  {"env", {{"A", "b"}}},
                  {"secrets", {"TRAIN_TEST_HERE"}},
                  {"scheduler", {{"name", "fifo"}, {"max", 90}}}}));
  EXPECT_FALSE(started_.has_value());
}

TEST_F(TrainCommand, PrintsTheLogOfRankZeroAndTheOutcome) {
  Serve();
  Ends("completed", "step 3 of 3");
  const Ran ran = Train();
  EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.err;
  EXPECT_THAT(ran.out, StartsWith("epoch 1\n"));
  EXPECT_THAT(ran.err, AllOf(HasSubstr("s1/0 completed in 12.2s: step 3 of 3"),
                             HasSubstr("accuracy    0.412")));
}

TEST_F(TrainCommand, PrintsTheTimeOfAProgramWithoutReports) {
  Serve();
  Ends("completed", "");
  Json trial = TrialJson(0, "completed");
  trial["seconds"] = 0;
  trial["ended"] = "2026-11-21T10:00:04.000000Z";
  trial["attempts"] = {rest::ToJson(rest::Attempt{.started = "2026-11-21T10:00:01.000000Z"})};
  trial_ = trial;
  EXPECT_THAT(Train().err, HasSubstr("s1/0 completed in 3.0s"));
}

TEST_F(TrainCommand, PrintsOnlyTheTrialAsJsonToStdout) {
  Serve();
  Ends("completed", "");
  const Ran ran = Train({"-o", "json"});
  EXPECT_EQ(Json::parse(ran.out)["state"], "completed");
  EXPECT_THAT(ran.err, HasSubstr("epoch 1\n"));
}

TEST_F(TrainCommand, ExitsWith5AndTheLastLinesOfAFailure) {
  Serve();
  Ends("failed", "rank 1: SIGKILL");
  const Ran ran = Train();
  EXPECT_EQ(ran.code, ExitCode::kSweepFailed);
  EXPECT_THAT(ran.err, HasSubstr("rank 1: SIGKILL\n  epoch 1\n  epoch 2\n"));
}

TEST_F(TrainCommand, TrainsInThisProcessWithoutAServer) {
  Ends("completed", "");
  const Ran ran = Train();
  EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.err;
  ASSERT_TRUE(started_.has_value());
  EXPECT_TRUE(started_->executor);
  EXPECT_FALSE(started_->rpc);
  EXPECT_THAT(ran.err, HasSubstr("http://"));
}

TEST_F(TrainCommand, ResumesTheUnfinishedTrainingOfTheSameCommand) {
  Ends("completed", "");
  Train();
  Json unfinished = SweepJson("s1", "running");
  unfinished["file"] = server_.last_body();
  server_.Answer("/sweeps", {{"sweeps", {unfinished}}, {"next_page_token", ""}});
  server_.Answer("/sweeps/s1", unfinished);
  const size_t before = server_.requests().size();
  Ends("completed", "");
  const Ran ran = Train();
  EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("s1/0"));
  const std::vector<std::string> requests = server_.requests();
  for (size_t i = before; i < requests.size(); ++i)
    EXPECT_THAT(requests[i], Not(HasSubstr("POST")));
}

TEST_F(TrainCommand, KeepsTheTrainingOfAServerRunningWhenInterrupted) {
  Serve();
  interrupt_.Request();
  const Ran ran = Train();
  EXPECT_EQ(ran.code, ExitCode::kInterrupted);
  EXPECT_THAT(ran.err, HasSubstr("attune sweep kill s1"));
  EXPECT_THAT(server_.requests(), Not(Contains(HasSubstr(":kill"))));
}

TEST_F(TrainCommand, StartsNothingForWrongArguments) {
  Serve();
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"--workers", "0"}, "attune: resources.workers: "},
      {{"--set", "resources.colour=red"}, "attune: resources.colour: "},
      {{"--set", "colour"}, "`colour`"},
      {{"--env", "NO-NAME"}, "secrets[0]: "},
      {{"-p", "lr"}, "-p: `lr`"},
      {{"--mode", "best"}, "--help"}};
  for (const auto& [flags, words] : wrong) {
    const Ran ran = Train(flags);
    EXPECT_EQ(ran.code, ExitCode::kUsage) << words;
    EXPECT_THAT(ran.err, HasSubstr(words));
  }
  EXPECT_EQ(RunAttune({"train"}).code, ExitCode::kUsage);
  EXPECT_THAT(server_.requests(), Not(Contains(HasSubstr("POST"))));
}

TEST_F(TrainCommand, StartsNoServerForAMissingProgram) {
  const Ran ran = Train({}, {"./nowhere"});
  EXPECT_EQ(ran.code, ExitCode::kUsage);
  EXPECT_THAT(ran.err, HasSubstr("attune: command"));
  EXPECT_FALSE(started_.has_value());
}

TEST_F(TrainCommand, ExitsWith5IfAGangCanNeverStart) {
  rest::SweepDetail sweep = MakeSweep("s1", "running");
  sweep.trials = {.pending = 1};
  sweep.waiting_reason = "needs 8 GPUs: box has 2 free; no executor is large enough";
  server_.Answer("/sweeps/s1", rest::ToJson(sweep));
  server_.Answer(
      "/sweeps/s1/trials",
      {{"trials", Json::array()}, {"next_page_token", ""}, {"seq", 9}, {"total_size", 1}});
  server_.AnswerPost("/sweeps/s1:kill", rest::ToJson(rest::SteeredSweep{{sweep}, "killed"}), 202);
  server_.Answer("/executors", rest::ToJson(rest::ExecutorList{{{.state = "online"}}}));
  server_.Answer("/demand", rest::ToJson(rest::DemandList{{{.sweep = "s1", .can_start = false}}}));
  server_.OnStream([this] { server_.Tell("executor_changed", {{"state", "online"}}); });
  const Ran ran = Train();
  EXPECT_EQ(ran.code, ExitCode::kSweepFailed);
  EXPECT_THAT(ran.err, HasSubstr("needs 8 GPUs"));
}

TEST_F(TrainCommand, DetachingNeedsAServer) {
  const Ran ran = Train({"-d"});
  EXPECT_EQ(ran.code, ExitCode::kFailure);
  EXPECT_THAT(ran.err, HasSubstr("attune serve"));
}

}  // namespace
}  // namespace attune::cli
