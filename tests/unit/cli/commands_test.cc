#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/golden.h"
#include "tests/unit/cli/command_line.h"
#include "tests/unit/cli/fake_server.h"

namespace attune::cli {
namespace {

using attune::testing::ExpectGolden;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// A server that runs on its own data folder.
class Commands : public ::testing::Test {
 protected:
  Commands() { server_.WriteTo(folder_.path()); }

  Ran Attune(std::vector<std::string> args) {
    args.insert(args.end(), {"--data-dir", folder_.path().string()});
    return RunAttune(args);
  }

  FakeServer server_;
  ScratchFolder folder_;
};

TEST(Arguments, WrongArgumentsAreUsageErrors) {
  const std::vector<std::vector<std::string>> wrong = {{},
                                                       {"dance"},
                                                       {"sweep"},
                                                       {"sweep", "get", "--colour"},
                                                       {"sweep", "stop"},
                                                       {"sweep", "list", "-o", "xml"},
                                                       {"trial", "get"},
                                                       {"run"},
                                                       {"run", "x.yaml", "--port", "70000"},
                                                       {"executor"}};
  for (const std::vector<std::string>& args : wrong) {
    const Ran ran = RunAttune(args);
    EXPECT_EQ(ran.code, ExitCode::kUsage) << ::testing::PrintToString(args);
    EXPECT_THAT(ran.err, HasSubstr("--help"));
    EXPECT_EQ(ran.out, "");
  }
}

TEST(Arguments, NamesTheWrongWordAndSuggestsASimilarOne) {
  struct Case {
    std::vector<std::string> args;
    std::vector<std::string> words;  // that the message contains
  };
  const std::vector<Case> cases = {
      {{"trian"}, {"`trian`", "`train`"}},
      {{"dance"}, {"`dance`"}},
      {{"sweep", "crate"}, {"`crate`", "`create`"}},
      {{"executor", "drian", "box"}, {"`drian`", "`drain`"}},
      {{"sweep", "list", "--shape", "--sever=x"}, {"`--shape`", "`--sever=x`", "`--server`"}},
      {{"--colour", "sweep", "list", "s1"}, {"`--colour`", "`s1`"}},
      {{"--colour"}, {"`--colour`"}},
      {{"trial", "logs", "s1/0", "-o", "json"}, {"`-o`"}},
      {{"sweep", "create"}, {"FILE"}},
      {{"sweep", "validate"}, {"FILE"}},
      {{"simulate"}, {"FILE"}},
      {{"executor"}, {"--server"}}};
  std::string table;
  for (const auto& [args, words] : cases) {
    const Ran ran = RunAttune(args);
    EXPECT_EQ(ran.code, ExitCode::kUsage) << ::testing::PrintToString(args);
    for (const std::string& word : words) EXPECT_THAT(ran.err, HasSubstr(word));
    table += "$ attune";
    for (const std::string& arg : args) table += " " + arg;
    table += "\n" + ran.err + "\n";
  }
  ExpectGolden("cli/usage", table);
}

TEST(Arguments, NamesAnOptionWhoseNumberIsOutOfRange) {
  EXPECT_THAT(RunAttune({"executor", "--cpus", "0"}).err, HasSubstr("--cpus: 0"));
  EXPECT_THAT(RunAttune({"executor", "--gpus", "-1"}).err, HasSubstr("--gpus: -1"));
  EXPECT_THAT(RunAttune({"executor", "--give-up", "nan"}).err, HasSubstr("--give-up: nan"));
}

TEST(Arguments, PrintsHelpToStdout) {
  const Ran ran = RunAttune({"sweep", "watch", "--help"});
  EXPECT_EQ(ran.code, ExitCode::kSuccess);
  EXPECT_THAT(ran.out, HasSubstr("--timeout"));
  EXPECT_EQ(ran.err, "");
}

TEST(Arguments, SuggestsToStartAServerIfNoneRuns) {
  const ScratchFolder folder;
  const Ran ran = RunAttune({"sweep", "list", "--data-dir", folder.path().string()});
  EXPECT_EQ(ran.code, ExitCode::kFailure);
  EXPECT_THAT(ran.err, HasSubstr("attune serve --data-dir " + folder.path().string()));
}

TEST(Arguments, RefusesToServeOtherHostsWithoutTls) {
  const Ran ran = RunAttune({"serve", "--host", "0.0.0.0"});
  EXPECT_EQ(ran.code, ExitCode::kUsage);
  EXPECT_THAT(ran.err, HasSubstr("--insecure-no-tls"));
}

TEST(Arguments, ExecutorWithoutATokenNamesTheOption) {
  const ScratchFolder folder;
  const Ran ran =
      RunAttune({"executor", "--server", "box:7071", "--data-dir", folder.path().string()});
  EXPECT_EQ(ran.code, ExitCode::kDenied);
  EXPECT_THAT(ran.err, HasSubstr("--token-file"));
}

TEST_F(Commands, ExitsWith4ForAWrongToken) {
  folder_.Write("token", "wrong\n");
  EXPECT_EQ(Attune({"sweep", "list"}).code, ExitCode::kDenied);
}

TEST_F(Commands, ExitsWith3ForAnUnknownSweep) {
  EXPECT_EQ(Attune({"sweep", "get", "s9"}).code, ExitCode::kNotFound);
  EXPECT_EQ(Attune({"sweep", "watch", "s9"}).code, ExitCode::kNotFound);
}

TEST_F(Commands, PrintsTitleAndDetailOfAProblem) {
  server_.AnswerPost("/sweeps/s1:stop", ProblemJson(409, "Conflict", "sweep s1 has already ended"),
                     409);
  const Ran ran = Attune({"sweep", "stop", "s1"});
  EXPECT_EQ(ran.code, ExitCode::kFailure);
  EXPECT_EQ(ran.err, "attune: Conflict: sweep s1 has already ended\n");
}

TEST_F(Commands, ListPrintsATable) {
  Json sweep = SweepJson("s1", "completed");
  sweep["tags"] = {"baseline"};
  server_.Answer("/sweeps", {{"sweeps", {sweep}}, {"next_page_token", ""}});
  const Ran none = Attune({"sweep", "list", "--tag", "base"});
  EXPECT_EQ(none.out, "");
  EXPECT_THAT(none.err, HasSubstr("base"));
  EXPECT_EQ(Attune({"sweep", "list", "--tag", "baseline"}).out, Attune({"sweep", "list"}).out);
  const Ran ran = Attune({"sweep", "list"});
  EXPECT_EQ(ran.code, ExitCode::kSuccess);
  ExpectGolden("cli/sweep_list", ran.out);
}

TEST_F(Commands, ListAsJsonPrintsTheServersJson) {
  const Json sweep = SweepJson("s1", "completed");
  server_.Answer("/sweeps", {{"sweeps", {sweep}}, {"next_page_token", ""}});
  const Ran ran = Attune({"sweep", "list", "-o", "json"});
  EXPECT_EQ(Json::parse(ran.out)["sweeps"][0], sweep);
}

TEST_F(Commands, GetWithoutAnIdShowsTheNewestSweep) {
  server_.Answer("/sweeps", {{"sweeps", {SweepJson("s2", "running")}}, {"next_page_token", "x"}});
  server_.Answer("/sweeps/s2", SweepJson("s2", "running"));
  const Ran ran = Attune({"sweep", "get"});
  EXPECT_EQ(ran.code, ExitCode::kSuccess);
  EXPECT_THAT(ran.out, AllOf(HasSubstr("s2 fashion-mnist"), HasSubstr("rungs 1, 3, 9")));
}

TEST_F(Commands, WatchPrintsTheOutcomeOfAnEndedSweepAtOnce) {
  server_.Answer("/sweeps/s1", SweepJson("s1", "failed"));
  server_.Answer("/sweeps/s1/trials", {{"trials", {TrialJson(17, "stopped")}},
                                       {"next_page_token", ""},
                                       {"seq", 9},
                                       {"total_size", 1}});
  const Ran ran = Attune({"sweep", "watch", "s1"});
  EXPECT_EQ(ran.code, ExitCode::kSweepFailed);
  EXPECT_THAT(ran.out, HasSubstr("rank 9 of 11"));
  EXPECT_THAT(ran.out, Not(HasSubstr("\r")));
}

TEST_F(Commands, TrialListAsksForTheSortedAndFilteredTrials) {
  const Json none{
      {"trials", Json::array()}, {"next_page_token", ""}, {"seq", 9}, {"total_size", 0}};
  server_.Answer("/sweeps/s1", SweepJson("s1", "running"));
  server_.Answer("/sweeps/s1/trials", none);
  const Ran ran =
      Attune({"trial", "list", "s1", "--sort", "-best", "--filter", "-failed", "--limit", "7"});
  EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.err;
  EXPECT_THAT(server_.requests(),
              Contains("GET /sweeps/s1/trials?filter=-failed&order_by=-best&page_size=7"));
  EXPECT_EQ(Attune({"trial", "list", "s1", "--limit", "0"}).code, ExitCode::kUsage);
}

TEST_F(Commands, WatchExitsWith6AfterItsTimeout) {
  server_.Answer("/sweeps/s1", SweepJson("s1", "running"));
  server_.Answer(
      "/sweeps/s1/trials",
      {{"trials", Json::array()}, {"next_page_token", ""}, {"seq", 9}, {"total_size", 1}});
  EXPECT_EQ(Attune({"sweep", "watch", "s1", "--timeout", "1ms"}).code, ExitCode::kTimeout);
  EXPECT_EQ(Attune({"sweep", "watch", "s1", "--timeout", "1"}).code, ExitCode::kUsage);
}

TEST_F(Commands, InterruptedWatchPrintsHowToWatchAgain) {
  server_.Answer("/sweeps/s1", SweepJson("s1", "running"));
  server_.Answer(
      "/sweeps/s1/trials",
      {{"trials", Json::array()}, {"next_page_token", ""}, {"seq", 9}, {"total_size", 1}});
  Interrupt interrupt;
  interrupt.Request();
  const Ran ran =
      RunAttune({"sweep", "watch", "s1", "--data-dir", folder_.path().string()}, Host{}, interrupt);
  EXPECT_EQ(ran.code, ExitCode::kInterrupted);
  EXPECT_THAT(ran.err, HasSubstr("attune sweep watch s1 --data-dir " + folder_.path().string()));
}

TEST_F(Commands, WatchAsJsonPrintsOneEventPerLine) {
  server_.Answer("/sweeps/s1", SweepJson("s1", "running"));
  server_.Answer(
      "/sweeps/s1/trials",
      {{"trials", Json::array()}, {"next_page_token", ""}, {"seq", 9}, {"total_size", 1}});
  Interrupt interrupt;
  server_.OnStream([this] {
    server_.Tell("trial_changed", {{"trial", 0}, {"state", "stopped"}, {"reason", ""}});
    server_.Tell("sweep_changed", {{"state", "completed"}, {"reason", ""}});
    server_.Answer("/sweeps/s1", SweepJson("s1", "completed"));
  });
  const Ran ran = Attune({"sweep", "watch", "s1", "-o", "json"});
  EXPECT_EQ(ran.code, ExitCode::kSuccess);
  EXPECT_EQ(ran.out,
            "{\"event\":\"trial_changed\",\"trial\":0,\"state\":\"stopped\",\"reason\":\"\"}\n"
            "{\"event\":\"sweep_changed\",\"state\":\"completed\",\"reason\":\"\"}\n");
}

TEST_F(Commands, CreatePrintsOnlyTheIdToStdout) {
  server_.AnswerPost("/sweeps", SweepJson("s3", "running"), 201);
  const std::string file = folder_.Write("sweep.yaml", "name: x\n");
  EXPECT_EQ(Attune({"sweep", "create", "-f", file}).out, "s3\n");
  EXPECT_EQ(Attune({"sweep", "create", file}).out, "s3\n");
}

TEST_F(Commands, CreateNamesTheLineOfAFaultAndExitsWith2) {
  server_.AnswerPost("/sweeps", ProblemJson(422, "wrong", "…", {{"/metric", 3, 1, "is missing"}}),
                     422);
  const std::string file = folder_.Write("sweep.yaml", "name: x\n");
  const Ran ran = Attune({"sweep", "create", file});
  EXPECT_EQ(ran.code, ExitCode::kUsage);
  EXPECT_EQ(ran.err, file + ":3:1: metric: is missing\n");
}

TEST_F(Commands, ValidateNamesTheLineOfAFaultWithoutAServer) {
  const std::string file = folder_.Write("sweep.yaml", "colour: red\n");
  const Ran ran = RunAttune({"sweep", "validate", file});
  EXPECT_EQ(ran.code, ExitCode::kUsage);
  EXPECT_THAT(ran.err, HasSubstr(file + ":1:1: "));
  EXPECT_EQ(ran.out, "");
}

TEST_F(Commands, ValidateListsTheValuesIfTheStepDoesNotReachMax) {
  const std::string file = folder_.Write("sweep.yaml",
                                         "command: [/bin/true]\n"
                                         "metric: {name: loss, mode: min}\n"
                                         "parameters:\n"
                                         "  a: {min: 0.0, max: 1.0, step: 0.3}\n"
                                         "  b: {min: 1, max: 5, step: 10}\n"
                                         "  c: {min: 0, max: 100, step: 7}\n"
                                         "  d: {min: 0.0, max: 1.0, step: 0.1}\n"
                                         "stop: {max_trials: 2}\n");
  const Ran ran = RunAttune({"sweep", "validate", file});
  EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.err;
  EXPECT_THAT(ran.out,
              AllOf(HasSubstr("# parameters.a: "), HasSubstr(" 0.0, 0.3, 0.6, 0.9\n"),
                    HasSubstr("# parameters.b: "), HasSubstr(" 1\n"), HasSubstr("# parameters.c: "),
                    HasSubstr(" 0, 7, 14, 21, …, 98\n"), Not(HasSubstr("parameters.d:"))));
}

TEST_F(Commands, RefusesAParameterThatIsGivenTwice) {
  const Ran ran = Attune({"trial", "enqueue", "s1", "-p", "width=64", "-p", "width=128"});
  EXPECT_EQ(ran.code, ExitCode::kUsage);
  EXPECT_THAT(ran.err, HasSubstr("-p: width "));
}

TEST_F(Commands, TrialGetShowsDecisionsWithTheirReasons) {
  rest::TrialDetail trial = MakeTrial(17, "stopped");
  trial.history = {
      {.step = 1, .attempt = 1, .seconds = 4.1, .metrics = {{"accuracy", 0.3}}},
      {.step = 2, .attempt = 1, .seconds = 8.2, .metrics = {{"accuracy", std::nan("")}}}};
  trial.attempts = {{.number = 1,
                     .state = "ended",
                     .outcome = "failed",
                     .failure = "rank 1 left with exit code 3\nTraceback\n  boom",
                     .executor = "box",
                     .ranks = {{.rank = 0}, {.rank = 1}}}};
  trial.decisions = {{.step = 3, .verdict = "stop", .reason = "rank 9 of 11", .rule = "asha"}};
  trial.checkpoints = {{{.step = 3, .attempt = 1, .path = "/data/step-3", .bytes = 431232}}};
  server_.Answer("/sweeps/s1/trials/17", rest::ToJson(trial));
  const Ran ran = Attune({"trial", "get", "s1/17"});
  EXPECT_EQ(ran.code, ExitCode::kSuccess);
  EXPECT_THAT(ran.out, AllOf(HasSubstr("rank 9 of 11"), HasSubstr("  |   boom"),
                             HasSubstr("421 KiB"), HasSubstr("nan")));
}

TEST_F(Commands, TrialExplainShowsTheDecisionAndItsRung) {
  server_.Answer(
      "/sweeps/s1/trials/17/explanation",
      rest::ToJson(rest::Explanation{
          .origin = "tpe",
          .rationale = rest::Rationale{.text = "model of 12 results: near trial 4"},
          .decision =
              rest::Decision{
                  .step = 3, .reason = "stopped at step 3: rank 2 of 3", .rule = "asha", .rung = 3},
          .policy = Json{{"name", "asha"}, {"max", 81}, {"reduction_factor", 3}},
          .policy_changed = true,
          .rung_trials = {{4, 0.91, "continue"}, {17, 0.412, "stop"}, {9, std::nullopt, "stop"}}}));
  const Ran ran = Attune({"trial", "explain", "s1/17"});
  EXPECT_EQ(ran.code, ExitCode::kSuccess);
  ExpectGolden("cli/trial_explain", ran.out);
}

TEST_F(Commands, ImportancePrintsBarsOrAReason) {
  rest::Importance importance{.metric = "accuracy",
                              .mode = "max",
                              .step = 9,
                              .trials = 143,
                              .best = 15,
                              .parameters = {{"lr", 0.8, 0.7, 0.9}, {"width", 0.2, 0.1, 0.3}}};
  server_.Answer("/sweeps/s1/importance", rest::ToJson(importance));
  ExpectGolden("cli/importance", Attune({"sweep", "importance", "s1"}).out);
  importance.reason = "too few trials";
  server_.Answer("/sweeps/s2/importance", rest::ToJson(importance));
  const Ran none = Attune({"sweep", "importance", "s2"});
  EXPECT_EQ(none.code, ExitCode::kSuccess);
  EXPECT_EQ(none.out, "");
  EXPECT_THAT(none.err, HasSubstr(importance.reason));
}

TEST_F(Commands, TrialExplainWorksBeforeTheFirstDecision) {
  server_.Answer("/sweeps/s1/trials/18/explanation",
                 rest::ToJson(rest::Explanation{.origin = "random"}));
  EXPECT_THAT(Attune({"trial", "explain", "s1/18"}).out,
              ::testing::StartsWith("proposed    random\n"));
}

TEST_F(Commands, TrialExplainDoesNotNameTheUserWhoEnqueued) {
  server_.Answer("/sweeps/s1/trials/19/explanation",
                 rest::ToJson(rest::Explanation{
                     .origin = "enqueued", .rationale = rest::Rationale{.text = "from a user"}}));
  EXPECT_THAT(Attune({"trial", "explain", "s1/19"}).out,
              ::testing::StartsWith("proposed    from a user\n"));
}

TEST_F(Commands, AlignsColumnsForLongNames) {
  Json trial = TrialJson(17, "stopped");
  trial["config"]["hidden_units"] = 64;
  server_.Answer("/sweeps/s1/trials/17", trial);
  EXPECT_THAT(Attune({"trial", "get", "s1/17"}).out,
              AllOf(HasSubstr("lr            0.1\n"), HasSubstr("hidden_units  64\n")));
  Json sweep = SweepJson("s1", "completed");
  sweep["best"]["config"]["hidden_units"] = 64;
  server_.Answer("/sweeps/s1", sweep);
  EXPECT_THAT(Attune({"sweep", "get", "s1"}).out,
              AllOf(HasSubstr("\ncreated       2026"), HasSubstr("hidden_units  64\n")));
}

TEST_F(Commands, LogsPrintsBytesUnchanged) {
  server_.Answer("/sweeps/s1/trials/3", TrialJson(3, "completed"));
  server_.AnswerText("/sweeps/s1/trials/3/logs", "epoch 1\n\x1b[1mdone\x1b[0m\n",
                     {{"X-Log-Offset", "0"}, {"X-Log-Size", "21"}});
  const Ran ran = Attune({"trial", "logs", "s1/3", "-f"});
  EXPECT_EQ(ran.code, ExitCode::kSuccess);
  EXPECT_EQ(ran.out, "epoch 1\n\x1b[1mdone\x1b[0m\n");
}

TEST_F(Commands, VersionPrintsClientAndServer) {
  EXPECT_THAT(Attune({"version"}).out, AllOf(HasSubstr("attune 0."), HasSubstr("server 9.8.7")));
  const ScratchFolder empty;
  const Ran alone = RunAttune({"version", "--data-dir", empty.path().string()});
  EXPECT_EQ(alone.code, ExitCode::kSuccess);
  EXPECT_THAT(alone.err, HasSubstr(empty.path().string()));
}

}  // namespace
}  // namespace attune::cli
