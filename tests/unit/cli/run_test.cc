#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "base/result.h"
#include "cli/check_sweep.h"
#include "cli/commands/resume.h"
#include "sweepfile/codec.h"
#include "tests/unit/cli/command_line.h"
#include "tests/unit/cli/fake_server.h"

namespace attune::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kSweepFile[] = R"(apiVersion: attune/v1
kind: Sweep
command: [/bin/true]
metric: {name: accuracy, mode: max}
parameters:
  lr: {min: 0.001, max: 0.5, scale: log}
searcher: {name: random}
scheduler: {name: asha, min: 1, max: 9, reduction_factor: 3}
stop: {max_trials: 12}
)";

class RunCommand : public ::testing::Test {
 protected:
  RunCommand() : file_(folder_.Write("sweep.yaml", kSweepFile)) {
    host_.log_to = [](Output&, LogLevel) {};
    host_.start_server = [this](const ServeOptions& options) {
      options_ = options;
      return Result<std::unique_ptr<RunningServer>>(
          std::make_unique<FakeRunning>(server_.endpoint()));
    };
    server_.Answer("/sweeps", {{"sweeps", Json::array()}, {"next_page_token", ""}});
    server_.AnswerPost("/sweeps", SweepJson("s1", "running"), 201);
    server_.Answer("/sweeps/s1", SweepJson("s1", "running"));
    server_.Answer("/sweeps/s1/trials",
                   {{"trials", {TrialJson(3, "completed"), TrialJson(17, "stopped")}},
                    {"next_page_token", ""},
                    {"seq", 9},
                    {"total_size", 1}});
  }

  void SweepEnds(const std::string& state) {
    server_.OnStream([this, state] {
      server_.Answer("/sweeps/s1", SweepJson("s1", state));
      server_.Tell("sweep_changed", {{"state", state}, {"reason", ""}});
    });
  }

  // Nothing runs, and no executor is large enough for the next gang.
  void SweepWaitsForALargerExecutor(const rest::TrialCounts& trials) {
    rest::SweepDetail sweep = MakeSweep("s1", "running");
    sweep.trials = trials;
    sweep.waiting_reason = "needs 8 GPUs: box has 2 free; no executor is large enough";
    server_.Answer("/sweeps/s1", rest::ToJson(sweep));
    server_.AnswerPost("/sweeps/s1:kill", rest::ToJson(rest::SteeredSweep{{sweep}, "killed"}), 202);
    server_.Answer("/executors",
                   rest::ToJson(rest::ExecutorList{{{.name = "box", .state = "online"}}}));
    server_.Answer("/demand",
                   rest::ToJson(rest::DemandList{{{.sweep = "s1", .can_start = false}}}));
    server_.OnStream([this] {
      server_.Tell("executor_changed", {{"executor", "box"}, {"state", "online"}});
    });
  }

  // Ends the sweep once the server has received `count` of these requests.
  std::jthread EndsAfter(const std::string& request, int count) {
    return std::jthread([this, request, count] {
      while (std::ranges::count(server_.requests(), request) < count)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      server_.Answer("/sweeps/s1", SweepJson("s1", "completed"));
      server_.Tell("sweep_changed", {{"state", "completed"}, {"reason", ""}});
    });
  }

  Ran Attune(std::vector<std::string> flags = {}) {
    std::vector<std::string> args = {"run", file_};
    args.insert(args.end(), flags.begin(), flags.end());
    return RunAttune(args, host_, interrupt_);
  }

  ScratchFolder folder_;
  std::string file_;
  FakeServer server_;
  ServeOptions options_;
  Interrupt interrupt_;
  Host host_;
};

TEST_F(RunCommand, PrintsTheBestConfigurationAndWhyOthersStopped) {
  SweepEnds("completed");
  const Ran ran = Attune();
  EXPECT_EQ(ran.code, ExitCode::kSuccess);
  EXPECT_THAT(ran.out, AllOf(HasSubstr("trial 3: accuracy 0.871"), HasSubstr("rank 9 of 11"),
                             HasSubstr("step-9-attempt-1")));
  EXPECT_THAT(ran.err, AllOf(HasSubstr("http://"), HasSubstr("`attune login`"),
                             Not(HasSubstr("secret")), Not(HasSubstr("\r"))));
}

TEST_F(RunCommand, PrintsOneJsonObjectToStdout) {
  SweepEnds("completed");
  const Ran ran = Attune({"-o", "json"});
  const Json outcome = Json::parse(ran.out);
  EXPECT_EQ(outcome["sweep"], "s1");
  EXPECT_EQ(outcome["best"]["config"], (Json{{"lr", 0.1}, {"width", 32}}));
  EXPECT_GE(outcome["wall_seconds"].get<double>(), 0);
}

TEST_F(RunCommand, ExitsWith5IfTheSweepFails) {
  SweepEnds("failed");
  EXPECT_EQ(Attune().code, ExitCode::kSweepFailed);
}

TEST_F(RunCommand, ExitsWith5IfAGangCanNeverStart) {
  SweepWaitsForALargerExecutor({.pending = 1});
  const Ran ran = Attune();
  EXPECT_EQ(ran.code, ExitCode::kSweepFailed);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("needs 8 GPUs"),
                             HasSubstr("attune run " + file_ + " --rpc-host 0.0.0.0")));
  EXPECT_THAT(server_.requests(), Contains("POST /sweeps/s1:kill")) << "no trial has run";
}

TEST_F(RunCommand, DoesNotKillASweepWithResultsThatCannotContinue) {
  SweepWaitsForALargerExecutor({.pending = 1, .completed = 2});
  EXPECT_EQ(Attune().code, ExitCode::kSweepFailed);
  EXPECT_THAT(server_.requests(), Not(Contains("POST /sweeps/s1:kill")));
}

TEST_F(RunCommand, WaitsForALargerExecutorIfOthersCanJoin) {
  SweepWaitsForALargerExecutor({.pending = 1});
  const std::jthread end = EndsAfter("GET /sweeps/s1", 2);
  EXPECT_EQ(Attune({"--listen"}).code, ExitCode::kSuccess);
  EXPECT_THAT(server_.requests(), Not(Contains("GET /demand")));
}

TEST_F(RunCommand, WaitsForItsOwnExecutorToConnect) {
  SweepWaitsForALargerExecutor({.pending = 1});
  server_.Answer("/executors", rest::ToJson(rest::ExecutorList{}));
  const std::jthread end = EndsAfter("GET /executors", 1);
  EXPECT_EQ(Attune().code, ExitCode::kSuccess);
}

TEST_F(RunCommand, NamesAskForASweepWithoutACommand) {
  Json external = SweepJson("s1", "running");
  external["external"] = true;
  server_.AnswerPost("/sweeps", external, 201);
  SweepEnds("completed");
  EXPECT_THAT(Attune({"--data-dir", "my data"}).err,
              HasSubstr("\n  attune ask s1 --data-dir 'my data'\n"));
}

TEST_F(RunCommand, PrintsTheLogOfTheLastFailure) {
  Json early = TrialJson(1, "failed");
  early["ended"] = "2026-11-21T10:00:01.000000Z";
  Json late = TrialJson(0, "failed");
  late["ended"] = "2026-11-21T10:00:02.000000Z";
  server_.Answer(
      "/sweeps/s1/trials",
      {{"trials", {late, early}}, {"next_page_token", ""}, {"seq", 9}, {"total_size", 1}});
  late["attempts"] = {rest::ToJson(
      rest::Attempt{.number = 2, .failure = "rank 1: exit code 1\nTraceback\n  boom\n"})};
  server_.Answer("/sweeps/s1/trials/0", late);
  SweepEnds("failed");
  const Ran ran = Attune({"--data-dir", "d"});
  EXPECT_THAT(ran.out, HasSubstr("attempt 2: rank 1: exit code 1\n  Traceback\n    boom\n"));
  EXPECT_THAT(ran.err, HasSubstr("`attune serve --with-executor --data-dir d`"));
}

TEST_F(RunCommand, SkipsEventsOfExecutorsFromEarlierRuns) {
  server_.OnStream([this] {
    server_.Tell("executor_changed",
                 {{"executor", "box"}, {"state", "lost"}, {"time", "2020-01-01T10:00:00.000000Z"}});
    server_.Tell(
        "executor_changed",
        {{"executor", "cave"}, {"state", "lost"}, {"time", "2100-01-01T10:00:00.000000Z"}});
    server_.Tell("trial_changed", {{"trial", 3},
                                   {"state", "running"},
                                   {"reason", ""},
                                   {"time", "2020-01-01T10:00:00.000000Z"}});
    server_.Tell("executor_changed",
                 {{"executor", "den"}, {"state", "lost"}, {"time", "2100-01-01T10:00:00.000000Z"}});
    server_.Answer("/sweeps/s1", SweepJson("s1", "completed"));
    server_.Tell("sweep_changed", {{"state", "completed"}, {"reason", ""}});
  });
  EXPECT_THAT(Attune().err, AllOf(Not(HasSubstr("executor box")), Not(HasSubstr("executor cave")),
                                  HasSubstr("trial 3 running"), HasSubstr("executor den")));
}

TEST_F(RunCommand, QuietPrintsOnlyTheOutcome) {
  SweepEnds("completed");
  EXPECT_EQ(Attune({"--quiet"}).err, "");
}

TEST_F(RunCommand, StartsNoServerForAWrongFile) {
  file_ = folder_.Write("wrong.yaml", "colour: red\n");
  host_.start_server = nullptr;
  const Ran ran = Attune();
  EXPECT_EQ(ran.code, ExitCode::kUsage);
  EXPECT_THAT(ran.err, HasSubstr(file_ + ":1:1: "));
}

TEST_F(RunCommand, AcceptsOtherExecutorsOnlyWithAFlag) {
  SweepEnds("completed");
  Attune();
  EXPECT_FALSE(options_.rpc);
  EXPECT_TRUE(options_.executor);
  Attune({"--rpc-port", "0"});
  EXPECT_TRUE(options_.rpc);
  Attune({"--no-executor"});
  EXPECT_TRUE(options_.rpc);
  EXPECT_FALSE(options_.executor);
}

TEST_F(RunCommand, PrintsHowToResumeWhenInterrupted) {
  interrupt_.Request();
  const Ran ran = Attune({"--data-dir", "my data"});
  EXPECT_EQ(ran.code, ExitCode::kInterrupted);
  EXPECT_THAT(ran.err, HasSubstr("attune run " + file_ + " --data-dir 'my data'"));
}

TEST_F(RunCommand, ResumesTheUnfinishedSweepOfTheSameText) {
  Json unfinished = SweepJson("s1", "running");
  unfinished["file"] = kSweepFile;
  server_.Answer("/sweeps", {{"sweeps", {unfinished}}, {"next_page_token", ""}});
  server_.Answer("/sweeps/s1", unfinished);
  SweepEnds("completed");
  const Ran ran = Attune();
  EXPECT_THAT(ran.err, AllOf(HasSubstr("s1"), HasSubstr("7 of 12")));
  for (const std::string& request : server_.requests())
    EXPECT_THAT(request, Not(HasSubstr("POST")));
}

// Runs a file that has an unfinished sweep.
class RunFileAgain : public RunCommand {
 protected:
  // `text`: the file when the sweep was created.
  void Unfinished(const std::string& text) {
    Json sweep = SweepJson("s1", "running");
    sweep["file"] = text;
    sweep["path"] = file_;
    server_.Answer("/sweeps", {{"sweeps", {sweep}}, {"next_page_token", ""}});
    server_.Answer("/sweeps/s1", sweep);
    SweepIsNow(text);
    SweepEnds("completed");
  }
  void SweepIsNow(const std::string& text) {
    const CheckedSweep checked = CheckSweep({.path = file_, .text = text});
    server_.Answer("/sweeps/s1/resolved", {{"resolved", sweepfile::ToJson(*checked.spec)}});
  }
  // The file with `before` replaced by `after`.
  static std::string With(const std::string& before, const std::string& after) {
    std::string text = kSweepFile;
    return text.replace(text.find(before), before.size(), after);
  }
  std::vector<std::string> Posts() {
    std::vector<std::string> posts;
    for (const std::string& request : server_.requests()) {
      if (request.starts_with("POST")) posts.push_back(request);
    }
    return posts;
  }
};

TEST_F(RunFileAgain, ResumesIfOnlyCommentsAndOrderChanged) {
  Unfinished(std::string("# tried twice\nname: ") + folder_.path().filename().string() + "\n" +
             kSweepFile);
  const Ran ran = Attune();
  EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("sweep s1: 7 of 12"));
  EXPECT_THAT(Posts(), IsEmpty());
}

TEST_F(RunFileAgain, ListsTheChangesThatAnEditCanMake) {
  Unfinished(With("max_trials: 12", "max_trials: 100"));
  const Ran ran = Attune();
  EXPECT_EQ(ran.code, ExitCode::kUsage);
  EXPECT_THAT(ran.err,
              AllOf(HasSubstr("attune: " + file_), HasSubstr("s1: stop.max_trials 12 (was 100)\n"),
                    HasSubstr("\n  --edit "), HasSubstr("\n  --new ")));
  EXPECT_THAT(Posts(), IsEmpty());
}

TEST_F(RunFileAgain, EditAppliesTheFile) {
  Unfinished(With("mode: max}", "mode: max, target: 0.9}"));
  Json edited = SweepJson("s1", "running");
  edited["effect"] = "target none";
  server_.AnswerPost("/sweeps/s1:edit", edited, 202);
  const Ran ran = Attune({"--edit"});
  EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.err;
  EXPECT_EQ(Json::parse(server_.last_body()), (Json{{"metric", {{"target", nullptr}}}}));
  EXPECT_THAT(ran.err, AllOf(HasSubstr("sweep s1: target none"), HasSubstr("sweep s1: 7 of 12")));
}

TEST_F(RunFileAgain, ResumesIfTheFileMatchesTheEditedSweep) {
  Unfinished(With("max_trials: 12", "max_trials: 100"));
  SweepIsNow(kSweepFile);
  EXPECT_EQ(Attune().code, ExitCode::kSuccess);
  EXPECT_THAT(Posts(), IsEmpty());
}

TEST_F(RunFileAgain, ResumesIfOnlyTheSweepWasEdited) {
  Unfinished(kSweepFile);
  SweepIsNow(With("max_trials: 12", "max_trials: 100"));
  EXPECT_EQ(Attune().code, ExitCode::kSuccess);
  EXPECT_THAT(Posts(), IsEmpty());
}

TEST_F(RunFileAgain, NamesChangesThatAnEditCannotMake) {
  Unfinished(With("name: asha", "name: pasha"));
  for (const std::vector<std::string>& flags : {std::vector<std::string>{}, {"--edit"}}) {
    const Ran ran = Attune(flags);
    EXPECT_EQ(ran.code, ExitCode::kUsage);
    EXPECT_THAT(ran.err,
                AllOf(HasSubstr("scheduler"), HasSubstr("--new "), Not(HasSubstr("--edit"))));
  }
  Unfinished(std::string(kSweepFile) + "initial_points: [{lr: 0.1}]\n");
  EXPECT_THAT(Attune().err, HasSubstr("initial_points: "));
  EXPECT_THAT(Posts(), IsEmpty());
}

TEST_F(RunFileAgain, NewStartsAnotherSweep) {
  Unfinished(kSweepFile);
  const Ran ran = Attune({"--new"});
  EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.err;
  EXPECT_THAT(ran.err, ContainsRegex(": s1\n"));
  EXPECT_THAT(Posts(), ElementsAre(StartsWith("POST /sweeps?")));
}

TEST_F(RunFileAgain, TreatsACopyOfTheFileAsAnotherFile) {
  Json sweep = SweepJson("s1", "running");
  sweep["file"] = kSweepFile;
  sweep["path"] = "/elsewhere/sweep.yaml";
  server_.Answer("/sweeps", {{"sweeps", {sweep}}, {"next_page_token", ""}});
  server_.Answer("/sweeps/s1", sweep);
  SweepEnds("completed");
  Attune();
  EXPECT_THAT(Posts(), ElementsAre(StartsWith("POST /sweeps?")));
}

TEST_F(RunCommand, FailsIfAnotherServerUsesTheFolder) {
  host_.start_server = [](const ServeOptions&) -> Result<std::unique_ptr<RunningServer>> {
    return Error{ErrorCode::kConflict, "attune-data is held by process 7"};
  };
  const Ran ran = Attune();
  EXPECT_EQ(ran.code, ExitCode::kFailure);
  EXPECT_THAT(ran.err, HasSubstr("process 7"));
}

TEST_F(RunCommand, DoesNotResumeAFinishedSweep) {
  Json ended = SweepJson("s1", "completed");
  ended["file"] = kSweepFile;
  server_.Answer("/sweeps", {{"sweeps", {ended}}, {"next_page_token", ""}});
  Api api(server_.endpoint());
  const Result<Unfinished> unfinished = FindUnfinished(api, *SweepDocument::Read(file_));
  ASSERT_TRUE(unfinished.ok());
  EXPECT_FALSE(unfinished->same.has_value());
  EXPECT_THAT(unfinished->others, IsEmpty());
}

TEST_F(RunCommand, ListsUnfinishedSweepsOfOtherFiles) {
  Json other = SweepJson("s1", "running");
  server_.Answer("/sweeps", {{"sweeps", {other}}, {"next_page_token", ""}});
  Api api(server_.endpoint());
  const Result<Unfinished> unfinished = FindUnfinished(api, *SweepDocument::Read(file_));
  ASSERT_TRUE(unfinished.ok());
  EXPECT_FALSE(unfinished->same.has_value());
  EXPECT_THAT(unfinished->others, ElementsAre("s1"));
}

}  // namespace
}  // namespace attune::cli
