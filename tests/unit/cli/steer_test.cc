#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/unit/cli/command_line.h"
#include "tests/unit/cli/fake_server.h"

namespace attune::cli {
namespace {

using attune::testing::ExpectGolden;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Commands that change something, against a server that describes the effect.
class Steer : public ::testing::Test {
 protected:
  Steer() { server_.WriteTo(folder_.path()); }

  Ran Attune(std::vector<std::string> args) {
    args.insert(args.end(), {"--data-dir", folder_.path().string()});
    return RunAttune(args);
  }

  static Json NoOffer() {
    return rest::ToJson(rest::Offer{.state = "completed", .reason = "max_trials"});
  }

  static Json With(Json answer, const std::string& effect) {
    answer["effect"] = effect;
    return answer;
  }

  FakeServer server_;
  ScratchFolder folder_;
};

TEST_F(Steer, SweepCommandPrintsTheEffect) {
  for (const std::string command : {"pause", "resume", "stop", "kill"}) {
    server_.AnswerPost("/sweeps/s1:" + command,
                       With(SweepJson("s1", "running"), "12 running trials will leave"), 202);
    const Ran ran = Attune({"sweep", command, "s1"});
    EXPECT_EQ(ran.code, ExitCode::kSuccess);
    EXPECT_EQ(ran.out, "");
    EXPECT_EQ(ran.err, "sweep s1: 12 running trials will leave\n");
  }
}

TEST_F(Steer, AsJsonPrintsTheServersAnswer) {
  const Json answer = With(SweepJson("s1", "paused"), "nothing runs");
  server_.AnswerPost("/sweeps/s1:pause", answer, 202);
  EXPECT_EQ(Json::parse(Attune({"sweep", "pause", "s1", "-o", "json"}).out), answer);
}

TEST_F(Steer, ExtendSendsOnlyTheGivenLimits) {
  server_.AnswerPost("/sweeps/s1:extend", With(SweepJson("s1", "running"), "now max_trials 40"),
                     202);
  EXPECT_EQ(Attune({"sweep", "extend", "s1", "--max-trials", "40", "--max-time", "2h"}).code,
            ExitCode::kSuccess);
  EXPECT_EQ(Json::parse(server_.last_body()), (Json{{"max_trials", 40}, {"max_time", "2h"}}));
}

TEST_F(Steer, RetryOfASweepRetriesItsFailedTrials) {
  Json trials = Json::array({TrialJson(0, "completed"), TrialJson(1, "failed"),
                             TrialJson(2, "killed"), TrialJson(3, "failed")});
  server_.Answer("/sweeps/s1/trials",
                 {{"trials", trials}, {"next_page_token", ""}, {"seq", 9}, {"total_size", 1}});
  for (const int number : {1, 2, 3}) {
    server_.AnswerPost("/sweeps/s1/trials/" + std::to_string(number) + ":retry",
                       With(TrialJson(number, "pending"), "tried again"), 202);
  }
  EXPECT_THAT(Attune({"sweep", "retry", "s1"}).err, HasSubstr(" 1, 3\n"));
  EXPECT_THAT(Attune({"sweep", "retry", "s1", "--killed"}).err, HasSubstr(" 1, 2, 3\n"));
  EXPECT_EQ(Json::parse(Attune({"sweep", "retry", "s1", "-o", "json"}).out),
            (Json{{"retried", {1, 3}}}));
  server_.Answer("/sweeps/s1/trials", {{"trials", {TrialJson(0, "completed")}},
                                       {"next_page_token", ""},
                                       {"seq", 9},
                                       {"total_size", 1}});
  EXPECT_THAT(Attune({"sweep", "retry", "s1"}).err, HasSubstr("--killed"));
}

TEST_F(Steer, RmDeletesSweepsInOrderUntilOneFails) {
  const auto gone = [](const std::string& id) {
    return Json{
        {"id", id}, {"state", "deleted"}, {"effect", "deleted; its files go from 2 data folders"}};
  };
  server_.AnswerDelete("/sweeps/s1", gone("s1"), 202);
  server_.AnswerDelete("/sweeps/s3", gone("s3"), 202);
  EXPECT_EQ(Attune({"sweep", "rm", "s1", "s3"}).err,
            "sweep s1: deleted; its files go from 2 data folders\n"
            "sweep s3: deleted; its files go from 2 data folders\n");
  EXPECT_EQ(Json::parse(Attune({"sweep", "rm", "s1", "s3", "-o", "json"}).out),
            (Json{{"deleted", {"s1", "s3"}}}));
  server_.AnswerDelete("/sweeps/s2", ProblemJson(409, "Conflict", "sweep s2 has not ended"), 409);
  const Ran ran = Attune({"sweep", "rm", "s1", "s2", "s3"});
  EXPECT_EQ(ran.code, ExitCode::kFailure);
  EXPECT_THAT(ran.err, HasSubstr("sweep s1: deleted"));
  EXPECT_THAT(ran.err, HasSubstr("Conflict: sweep s2 "));
  EXPECT_THAT(ran.err, Not(HasSubstr("sweep s3")));
}

TEST_F(Steer, RmSaysHowToUndoADeletionThatIsDelayed) {
  const std::string effect = "it will be deleted in 10 seconds";
  server_.AnswerDelete("/sweeps/s1",
                       rest::ToJson(rest::DeletedSweep{
                           .id = "s1",
                           .state = "scheduled",
                           .effect = effect,
                           .deletion = rest::ScheduledDeletion{.time = "2026-07-01T12:00:10Z",
                                                               .actor = "ada",
                                                               .seconds_left = 10}}),
                       202);
  EXPECT_EQ(Attune({"sweep", "rm", "s1"}).err, "sweep s1: " + effect + "\n");
  EXPECT_EQ(Json::parse(Attune({"sweep", "rm", "s1", "-o", "json"}).out),
            (Json{{"deleted", Json::array()}, {"scheduled", {"s1"}}}));
  server_.AnswerPost("/sweeps/s1:undelete", With(SweepJson("s1", "killed"), "it is kept"), 202);
  EXPECT_EQ(Attune({"sweep", "undelete", "s1"}).err, "sweep s1: it is kept\n");
}

TEST_F(Steer, NotesAndTagsAreSentAndTheEffectIsPrinted) {
  server_.AnswerPost("/sweeps/s1:annotate",
                     With(SweepJson("s1", "completed"), "its tags are best, lr"), 202);
  const Ran tagged = Attune({"sweep", "tag", "s1", "best", "lr", "--remove", "slow"});
  EXPECT_EQ(tagged.code, ExitCode::kSuccess) << tagged.err;
  EXPECT_EQ(tagged.err, "sweep s1: its tags are best, lr\n");
  EXPECT_EQ(Json::parse(server_.last_body()),
            Json::parse(R"({"add_tags": ["best", "lr"], "remove_tags": ["slow"]})"));
  Attune({"sweep", "note", "s1", "two\nlines"});
  EXPECT_EQ(Json::parse(server_.last_body()), (Json{{"note", "two\nlines"}}));
  server_.AnswerPost("/sweeps/s1/trials/17:annotate",
                     With(TrialJson(17, "running"), "its note is removed"), 202);
  EXPECT_EQ(Attune({"trial", "note", "s1/17", ""}).err, "trial s1/17: its note is removed\n");
  EXPECT_EQ(Json::parse(server_.last_body()), (Json{{"note", ""}}));
  Attune({"trial", "tag", "s1/17", "--remove", "a", "--remove", "b"});
  EXPECT_EQ(Json::parse(server_.last_body()), Json::parse(R"({"remove_tags": ["a", "b"]})"));
  EXPECT_EQ(Attune({"trial", "tag", "s1/17"}).code, ExitCode::kUsage);
  EXPECT_EQ(Attune({"trial", "tag", "17", "best"}).code, ExitCode::kUsage);
}

TEST_F(Steer, ATrialShowsItsNoteAndTags) {
  rest::TrialDetail trial = MakeTrial(17, "running");
  trial.tags = {"best", "lr"};
  trial.note = "uses the new loader\n\ncompare with s3";
  trial.seconds = 12.34;
  server_.Answer("/sweeps/s1/trials/17", rest::ToJson(trial));
  ExpectGolden("cli/trial_note", Attune({"trial", "get", "s1/17"}).out);
  rest::SweepDetail sweep = MakeSweep("s1", "running");
  sweep.tags = trial.tags;
  sweep.note = trial.note;
  server_.Answer("/sweeps/s1", rest::ToJson(sweep));
  EXPECT_THAT(Attune({"sweep", "get", "s1"}).out, HasSubstr("tags        best, lr\n"
                                                            "note        uses the new loader\n"
                                                            "            compare with s3\n"));
}

TEST_F(Steer, EditSendsAMergePatchOfTheSweepFile) {
  server_.AnswerPost("/sweeps/s1:edit", With(SweepJson("s1", "running"), "now priority 2"), 202);
  const Ran ran = Attune({"sweep", "edit", "s1", "stop.max_trials=200", "parameters.lr.max=1e-1",
                          "parameters.a.b.min=2", "stop.max_time=2h", "metric.target=null"});
  EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.err;
  EXPECT_EQ(ran.err, "sweep s1: now priority 2\n");
  EXPECT_EQ(Json::parse(server_.last_body()),
            Json::parse(R"({"stop": {"max_trials": 200, "max_time": "2h"},
                            "parameters": {"lr": {"max": 0.1}, "a.b": {"min": 2}},
                            "metric": {"target": null}})"));
}

TEST_F(Steer, EditRefusesWordsThatAreNoSettings) {
  EXPECT_THAT(Attune({"sweep", "edit", "s1", "priority"}).err, HasSubstr("`priority`"));
  EXPECT_THAT(Attune({"sweep", "edit", "s1", "stop=1", "stop.patience=2"}).err,
              HasSubstr("`stop.patience=2`"));
}

constexpr const char* kResolved = R"({
  "name": "digits", "command": ["/home/ada/mnist/train"], "working_directory": "/home/ada/mnist",
  "metric": {"name": "loss", "mode": "min"}, "stop": {"max_trials": 4},
  "parameters": {"lr": {"min": 0.1, "max": 1.0}}, "scheduler": {"name": "asha", "max": 9}})";

TEST_F(Steer, CloneCreatesTheSweepWithItsSettings) {
  server_.Answer("/sweeps/s1/resolved", {{"resolved", Json::parse(kResolved)}});
  server_.AnswerPost("/sweeps", SweepJson("s2", "running"), 201);
  const Ran ran = Attune({"sweep", "clone", "s1", "--set", "stop.max_trials=40", "--set",
                          "parameters.lr={values: [0.3, 0.5]}", "--name", "wider"});
  EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.err;
  EXPECT_EQ(ran.out, "s2\n");
  const std::string created = server_.last_body();
  EXPECT_EQ(Attune({"sweep", "clone", "s1", "--set", "stop.max_trials=40", "--set",
                    "parameters.lr={values: [0.3, 0.5]}", "--name", "wider", "--dry-run"})
                .out,
            created);
  EXPECT_EQ(server_.requests().back(), "GET /sweeps/s1/resolved");
  const std::string file = folder_.Write("created.yaml", created);
  const Ran resolved = RunAttune({"simulate", file, "-o", "json"});
  EXPECT_EQ(resolved.code, ExitCode::kSuccess) << resolved.err;
  EXPECT_THAT(created, HasSubstr("name: wider\n"));
  EXPECT_THAT(created, HasSubstr("max_trials: 40\n"));
  EXPECT_THAT(created, HasSubstr("command: [/home/ada/mnist/train]\n"));
}

TEST_F(Steer, CloneSuggestsTheSimilarKeyAndCreatesNothing) {
  server_.Answer("/sweeps/s1/resolved", {{"resolved", Json::parse(kResolved)}});
  const Ran ran = Attune({"sweep", "clone", "s1", "--set", "stop.max_trails=40"});
  EXPECT_EQ(ran.code, ExitCode::kUsage);
  EXPECT_THAT(ran.err, HasSubstr("stop.max_trails"));
  EXPECT_THAT(ran.err, HasSubstr("max_trials?"));
  EXPECT_EQ(server_.requests().back(), "GET /sweeps/s1/resolved");
  EXPECT_EQ(Attune({"sweep", "clone", "s1", "--set", "max_trials"}).code, ExitCode::kUsage);
}

TEST_F(Steer, EnqueueSendsTypedValuesAndPrintsOnlyTheTrial) {
  server_.AnswerPost("/sweeps/s1/trials", TrialJson(12, "pending"), 201);
  const Ran ran = Attune({"trial", "enqueue", "s1", "-p", "lr=1e-3", "-p", "optimizer=sgd", "-p",
                          "nesterov=true", "-p", "tag=\"1\"", "-p", "path=a=b"});
  EXPECT_EQ(ran.out, "s1/12\n") << ran.err;
  EXPECT_EQ(server_.last_body(),
            R"({"config":{"lr":0.001,"optimizer":"sgd","nesterov":true,"tag":"1","path":"a=b"}})");
}

TEST_F(Steer, EnqueueReadsAFileThatTheCommandLineOverrides) {
  server_.AnswerPost("/sweeps/s1/trials", TrialJson(12, "pending"), 201);
  const std::string file = folder_.Write("config.json", R"({"lr": 0.1, "width": 32})");
  EXPECT_EQ(Attune({"trial", "enqueue", "s1", "--config", file, "-p", "width=64"}).code,
            ExitCode::kSuccess);
  EXPECT_EQ(server_.last_body(), R"({"config":{"lr":0.1,"width":64}})");
}

TEST_F(Steer, RefusesMalformedParameters) {
  EXPECT_EQ(Attune({"trial", "enqueue", "s1", "-p", "lr"}).code, ExitCode::kUsage);
  EXPECT_EQ(Attune({"trial", "enqueue", "s1", "-p", "=1"}).code, ExitCode::kUsage);
  const std::string file = folder_.Write("config.json", "[1]");
  EXPECT_EQ(Attune({"trial", "enqueue", "s1", "--config", file}).code, ExitCode::kUsage);
}

TEST_F(Steer, TrialCommandPrintsTheEffect) {
  server_.AnswerPost("/sweeps/s1/trials/17:kill", With(TrialJson(17, "killed"), "it ended now"),
                     202);
  EXPECT_EQ(Attune({"trial", "kill", "s1/17"}).err, "trial s1/17: it ended now\n");
  EXPECT_EQ(Attune({"trial", "kill", "s1", "17"}).err, "trial s1/17: it ended now\n");
}

TEST_F(Steer, RetryAndContinueSendTheirOptions) {
  server_.AnswerPost("/sweeps/s1/trials/17:retry", With(TrialJson(17, "pending"), "ok"), 202);
  server_.AnswerPost("/sweeps/s1/trials/17:continue", With(TrialJson(17, "pending"), "ok"), 202);
  Attune({"trial", "retry", "s1/17", "--from-start"});
  EXPECT_EQ(server_.last_body(), R"({"from_start":true})");
  Attune({"trial", "continue", "s1/17", "--until", "81"});
  EXPECT_EQ(server_.last_body(), R"({"until":81})");
  EXPECT_EQ(Attune({"trial", "continue", "s1/17"}).code, ExitCode::kUsage);
}

TEST_F(Steer, PinNamesACheckpointByTrialAttemptAndStep) {
  server_.AnswerPost("/sweeps/s1/trials/17/checkpoints/2-900:pin",
                     With(TrialJson(17, "running"), "it stays"), 202);
  EXPECT_EQ(Attune({"checkpoint", "pin", "s1/17/2-900"}).err, "checkpoint s1/17/2-900: it stays\n");
  for (const std::string name : {"s1/17", "s1/17/2", "s1/2-900", "s1/17/x-900"}) {
    EXPECT_EQ(Attune({"checkpoint", "unpin", name}).code, ExitCode::kUsage) << name;
  }
}

TEST_F(Steer, CheckpointListPrintsNames) {
  Json kept = {{"sweep", "s1"},
               {"trial", 17},
               {"attempt", 2},
               {"step", 900},
               {"bytes", 431232},
               {"pinned", true},
               {"stored", true},
               {"executor", "box"},
               {"best", 0.871},
               {"path", "/d/900"},
               {"digest", "sha256"},
               {"time", "2026-11-21T10:00:00Z"},
               {"stored_url", "s3://bucket/checkpoints/s1/17/2-900"}};
  server_.Answer("/sweeps/s1/checkpoints", {{"checkpoints", {kept}}, {"next_page_token", ""}});
  const auto table = Attune({"checkpoint", "list", "s1"});
  ExpectGolden("cli/checkpoint_list", table.out);
  EXPECT_EQ(Json::parse(Attune({"checkpoint", "list", "s1", "-o", "json"}).out),
            (Json{{"checkpoints", {kept}}, {"next_page_token", ""}}));

  server_.Answer("/sweeps/s1/checkpoints",
                 {{"checkpoints", Json::array()}, {"next_page_token", ""}});
  EXPECT_THAT(Attune({"checkpoint", "list", "s1"}).out, Not(HasSubstr("CHECKPOINT")));
}

TEST_F(Steer, AskPrintsTheTrial) {
  server_.AnswerPost("/sweeps/s1/trials:ask",
                     {{"state", "running"},
                      {"reason", ""},
                      {"trial", 4},
                      {"config", {{"lr", 0.1}}},
                      {"attempt", 1},
                      {"epoch", 12},
                      {"seed", 7},
                      {"milestone", 3},
                      {"max_step", 9}},
                     200);
  const Ran ran = Attune({"ask", "s1"});
  EXPECT_EQ(ran.code, ExitCode::kSuccess);
  EXPECT_THAT(ran.out, HasSubstr("trial       s1/4\nepoch       12\n"));
  EXPECT_THAT(ran.out, HasSubstr("lr          0.1\n"));
}

TEST_F(Steer, AskSendsItsLease) {
  server_.AnswerPost("/sweeps/s1/trials:ask", NoOffer(), 200);
  Attune({"ask", "s1", "--lease", "10m"});
  EXPECT_EQ(server_.last_body(), R"({"lease":"10m"})");
}

TEST_F(Steer, AskExitsWith3IfThereIsNoTrial) {
  server_.AnswerPost("/sweeps/s1/trials:ask", NoOffer(), 200);
  const Ran ran = Attune({"ask", "s1"});
  EXPECT_EQ(ran.code, ExitCode::kNotFound);
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.err, AllOf(HasSubstr("s1"), HasSubstr("completed"), HasSubstr("max_trials")));
}

TEST_F(Steer, TellPrintsTheVerdict) {
  server_.AnswerPost("/sweeps/s1/trials/4:tell",
                     {{"verdict", "stop"}, {"reason", "rank 9 of 11"}, {"milestone", 0}}, 200);
  const Ran ran = Attune({"tell", "s1/4", "--epoch", "12", "--step", "3", "-m", "accuracy=0.7",
                          "-m", "loss=nan", "--seconds", "1.5"});
  EXPECT_EQ(ran.out, "stop\n");
  EXPECT_EQ(ran.err, "rank 9 of 11\n");
  EXPECT_EQ(server_.last_body(),
            R"({"epoch":12,"step":3,"metrics":{"accuracy":0.7,"loss":"nan"},"seconds":1.5})");
}

TEST_F(Steer, TellReadsNumbersWithoutLeadingZeroOrWithPlus) {
  server_.AnswerPost("/sweeps/s1/trials/4:tell", Json::object(), 204);
  Attune({"tell", "s1/4", "--epoch", "12", "--step", "3", "-m", "a=.3", "-m", "b=1.", "-m", "c=+5",
          "-m", "d=-1e-3"});
  EXPECT_EQ(server_.last_body(),
            R"({"epoch":12,"step":3,"metrics":{"a":0.3,"b":1.0,"c":5.0,"d":-0.001}})");
  for (const std::string wrong : {"e=+", "f=1.2.3", "g=\"1\""})
    EXPECT_EQ(Attune({"tell", "s1/4", "--epoch", "12", "--step", "3", "-m", wrong}).code,
              ExitCode::kUsage)
        << wrong;
}

TEST_F(Steer, TellSendsTheFinalState) {
  server_.AnswerPost("/sweeps/s1/trials/4:tell", Json::object(), 204);
  const Ran ran = Attune({"tell", "s1/4", "--epoch", "12", "--failed", "--message", "no memory"});
  EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.err;
  EXPECT_EQ(server_.last_body(), R"({"epoch":12,"state":"failed","message":"no memory"})");
  Attune({"tell", "s1/4", "--epoch", "12", "--completed"});
  EXPECT_EQ(server_.last_body(), R"({"epoch":12,"state":"completed"})");
  Attune({"tell", "s1/4", "--epoch", "12", "--running"});
  EXPECT_EQ(server_.last_body(), R"({"epoch":12,"state":"running"})");
}

TEST_F(Steer, TellAlsoAsksForTheNextTrial) {
  Json answer{
      {"verdict", "stop"},
      {"reason", "rank 9 of 11"},
      {"milestone", 0},
      {"next", {{"state", "running"}, {"reason", ""}, {"trial", 5}, {"config", {{"lr", 0.1}}}}}};
  server_.AnswerPost("/sweeps/s1/trials/4:tell", answer, 200);
  const std::vector<std::string> tell{"tell", "s1/4", "--epoch", "12",      "--step", "9",
                                      "-m",   "a=1",  "--ask",   "--lease", "10m"};
  const Ran ran = Attune(tell);
  EXPECT_EQ(ran.code, ExitCode::kSuccess);
  EXPECT_THAT(ran.out, HasSubstr("stop\ntrial       s1/5\n"));
  EXPECT_EQ(server_.last_body(),
            R"({"epoch":12,"step":9,"metrics":{"a":1.0},"ask":true,"lease":"10m"})");
  answer["next"] = NoOffer();
  server_.AnswerPost("/sweeps/s1/trials/4:tell", answer, 200);
  const Ran last = Attune(tell);
  EXPECT_EQ(last.code, ExitCode::kNotFound);
  EXPECT_THAT(last.err, AllOf(StartsWith("rank 9 of 11\n"), HasSubstr("max_trials")));
}

TEST_F(Steer, TellRefusesAReportTogetherWithAnEnd) {
  EXPECT_EQ(Attune({"tell", "s1/4", "--epoch", "1", "--completed", "--step", "3"}).code,
            ExitCode::kUsage);
  EXPECT_EQ(Attune({"tell", "s1/4", "--step", "3"}).code, ExitCode::kUsage);
}

TEST_F(Steer, EnqueueNamesTheParameterThatTheServerRefuses) {
  server_.AnswerPost(
      "/sweeps/s1/trials",
      ProblemJson(422, "The body is wrong", "…", {{"/config/lr", 1, 2, "7 is above max 0.1"}}),
      422);
  const Ran ran = Attune({"trial", "enqueue", "s1", "-p", "lr=7"});
  EXPECT_EQ(ran.code, ExitCode::kUsage);
  EXPECT_EQ(ran.err, "attune: config.lr: 7 is above max 0.1\n");
}

}  // namespace
}  // namespace attune::cli
