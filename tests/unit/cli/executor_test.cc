#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/unit/cli/command_line.h"
#include "tests/unit/cli/fake_server.h"

namespace attune::cli {
namespace {

using attune::testing::ExpectGolden;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ExecutorCommands : public ::testing::Test {
 protected:
  ExecutorCommands() { server_.WriteTo(folder_.path()); }

  Ran Attune(std::vector<std::string> args) {
    args.insert(args.end(), {"--data-dir", folder_.path().string()});
    return RunAttune(args);
  }
  static rest::Executor MakeExecutor(const std::string& name, const std::string& state) {
    return {.name = name,
            .state = state,
            .address = "10.0.0.7",
            .cpus = 4,
            .cpus_free = 1,
            .gpus = 2,
            .gpus_free = 2,
            .seconds_since_heartbeat = 1.25};
  }
  void Answer(std::vector<rest::Executor> executors) {
    server_.Answer("/executors", rest::ToJson(rest::ExecutorList{std::move(executors)}));
  }

  FakeServer server_;
  ScratchFolder folder_;
};

TEST_F(ExecutorCommands, ListShowsRunningTrialsAndDrainedExecutors) {
  rest::Executor busy = MakeExecutor("box", "online");
  busy.disk_free_bytes = int64_t{52} << 30;
  busy.labels = {{"gpu", "h100"}, {"zone", "a"}};
  busy.running = {{.sweep = "s1", .trial = 3, .attempt = 1, .ranks = {0, 1}},
                  {.sweep = "s2", .trial = 0, .attempt = 2, .ranks = {4, 4}}};
  rest::Executor drained = MakeExecutor("den", "lost");
  drained.gpus = 0;
  drained.drain = {.since = "2026-11-22T10:00:00.000000Z", .reason = "a new disk"};
  drained.seconds_since_heartbeat = std::nullopt;
  Answer({busy, drained});
  ExpectGolden("cli/executor_list", Attune({"executor", "list"}).out);
  EXPECT_EQ(Json::parse(Attune({"executor", "list", "-o", "json"}).out)["executors"].size(), 2u);
}

TEST_F(ExecutorCommands, ListExplainsWhyNothingStartsOnAnExecutor) {
  rest::Executor unhealthy = MakeExecutor("box", "unhealthy");
  unhealthy.health_problem = "its disk has 0.2 GiB left (/data), less than 1.0 GiB";
  rest::Executor quarantined = MakeExecutor("den", "quarantined");
  quarantined.quarantine = {.until = "2026-11-22T10:00:00.000000Z", .reason = "gangs fail there"};
  Answer({unhealthy, quarantined});
  const std::string out = Attune({"node", "list"}).out;
  EXPECT_THAT(out, HasSubstr(": " + *unhealthy.health_problem + "\nden "));
  EXPECT_THAT(
      out, HasSubstr(quarantined.quarantine->until + ": " + quarantined.quarantine->reason + "\n"));
}

TEST_F(ExecutorCommands, ListExplainsWhyAnExecutorUploadsNothing) {
  rest::Executor paused = MakeExecutor("box", "online");
  paused.storage_problem = "s3://bucket: the token has expired";
  Answer({paused});
  EXPECT_THAT(Attune({"executor", "list"}).out, HasSubstr(paused.storage_problem + "\n"));
}

TEST_F(ExecutorCommands, EmptyListNamesTheCommandThatStartsOne) {
  Answer({});
  const Ran ran = Attune({"executor", "list"});
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.err, HasSubstr("attune executor --server"));
}

TEST_F(ExecutorCommands, DrainSendsItsReasonAndPrintsTheEffect) {
  Json answer = rest::ToJson(MakeExecutor("box", "draining"));
  answer["effect"] = "nothing starts there";
  server_.AnswerPost("/executors/box:drain", answer, 202);
  const Ran ran = Attune({"executor", "drain", "box", "--reason", "a new disk", "--now"});
  EXPECT_EQ(ran.err, "executor box: nothing starts there\n");
  EXPECT_EQ(server_.last_body(), R"({"reason":"a new disk","now":true})");
  answer["effect"] = "trials start there again";
  server_.AnswerPost("/executors/box:resume", answer, 202);
  EXPECT_EQ(Attune({"executor", "resume", "box"}).err, "executor box: trials start there again\n");
  EXPECT_EQ(server_.last_body(), "{}");
}

TEST_F(ExecutorCommands, EncodesNamesInPaths) {
  static_cast<void>(Attune({"executor", "drain", "a b/c"}));
  EXPECT_THAT(server_.requests(), ElementsAre("POST /executors/a%20b%2Fc:drain"));
}

TEST_F(ExecutorCommands, RefusesFlagsOfAnExecutorWithoutOne) {
  const std::string file = folder_.Write("sweep.yaml",
                                         "command: [/bin/true]\n"
                                         "metric: {name: loss, mode: min}\n"
                                         "parameters: {lr: {min: 0.1, max: 1.0}}\n"
                                         "stop: {max_trials: 1}\n");
  const std::vector<std::string> given = {"--interface", "lo", "--label", "gpu=h100"};
  for (std::vector<std::string> command :
       {std::vector<std::string>{"serve"}, {"run", file, "--no-executor"}}) {
    command.insert(command.end(), given.begin(), given.end());
    const Ran ran = RunAttune(command);
    EXPECT_EQ(ran.code, ExitCode::kUsage);
    EXPECT_THAT(ran.err, HasSubstr("--interface, --label:"));
  }
}

TEST_F(ExecutorCommands, NamesTheFlagThatAnotherOneNeeds) {
  const Ran serve = RunAttune({"serve", "--https-port", "7443"});
  EXPECT_EQ(serve.code, ExitCode::kUsage);
  EXPECT_THAT(serve.err, AllOf(HasSubstr("--https-port"), HasSubstr("--https-host")));
  const Ran create = RunAttune({"sweep", "create", "sweep.yaml", "--timeout", "2h"});
  EXPECT_EQ(create.code, ExitCode::kUsage);
  EXPECT_THAT(create.err, AllOf(HasSubstr("--timeout"), HasSubstr("--watch")));
}

TEST_F(ExecutorCommands, ReadsLabelsAndRefusesWrongOnes) {
  ExecutorOptions started;
  Host host;
  host.log_to = [](Output&, LogLevel) {};
  host.run_executor = [&](const ExecutorOptions& options, Interrupt&) -> Status {
    started = options;
    return {};
  };
  Interrupt interrupt;
  const auto run = [&](std::vector<std::string> labels) {
    std::vector<std::string> args = {"executor",
                                     "--server",
                                     "127.0.0.1:1",
                                     "--data-dir",
                                     folder_.path().string(),
                                     "--token-file",
                                     folder_.Write("word", "secret\n")};
    for (const std::string& label : labels) args.insert(args.end(), {"--label", label});
    return RunAttune(args, host, interrupt);
  };
  EXPECT_EQ(run({"gpu=h100", "zone=a"}).code, ExitCode::kSuccess);
  EXPECT_EQ(started.labels, (Labels{{"gpu", "h100"}, {"zone", "a"}}));
  EXPECT_THAT(run({"gpu"}).err, HasSubstr("--label: `gpu`"));
  EXPECT_THAT(run({"gpu=a", "gpu=b"}).err, HasSubstr("--label: gpu"));
  EXPECT_THAT(run({"gpu=a b"}).err, HasSubstr("`a b`"));
  EXPECT_EQ(run({"=a"}).code, ExitCode::kUsage);
}

TEST_F(ExecutorCommands, RefusesLabelsOfAServerWithoutAnExecutor) {
  const Ran ran = RunAttune({"serve", "--label", "gpu=h100"});
  EXPECT_EQ(ran.code, ExitCode::kUsage);
  EXPECT_THAT(ran.err, HasSubstr("--with-executor"));
}

TEST_F(ExecutorCommands, ReadsLimitsAsSizes) {
  ExecutorOptions started;
  Host host;
  host.log_to = [](Output&, LogLevel) {};
  host.run_executor = [&](const ExecutorOptions& options, Interrupt&) -> Status {
    started = options;
    return {};
  };
  Interrupt interrupt;
  const auto run = [&](std::vector<std::string> limits) {
    std::vector<std::string> args = {"executor",
                                     "--server",
                                     "127.0.0.1:1",
                                     "--data-dir",
                                     folder_.path().string(),
                                     "--token-file",
                                     folder_.Write("word", "secret\n")};
    args.insert(args.end(), limits.begin(), limits.end());
    return RunAttune(args, host, interrupt);
  };
  EXPECT_EQ(run({"--min-free-disk", "5GiB"}).code, ExitCode::kSuccess);
  EXPECT_EQ(started.limits.disk_bytes, int64_t{5} << 30);
  EXPECT_EQ(started.limits.memory_bytes, std::nullopt);
  EXPECT_EQ(run({"--min-free-memory", "0"}).code, ExitCode::kSuccess);
  EXPECT_EQ(started.limits.memory_bytes, 0);
  EXPECT_THAT(run({"--min-free-disk", "5"}).err, HasSubstr("--min-free-disk: `5`"));
  EXPECT_EQ(run({"--min-free-memory", "much"}).code, ExitCode::kUsage);
  EXPECT_EQ(run({"--max-rank-log", "1MiB"}).code, ExitCode::kSuccess);
  EXPECT_EQ(run({"--max-rank-log", "0"}).code, ExitCode::kSuccess);
  EXPECT_EQ(started.limits.rank_log_bytes, 0);
  EXPECT_THAT(run({"--max-rank-log", "1023KiB"}).err, HasSubstr("--max-rank-log: 1023KiB"));
  EXPECT_THAT(RunAttune({"serve", "--min-free-disk", "5GiB"}).err, HasSubstr("--with-executor"));
}

TEST_F(ExecutorCommands, CreatePrintsWhyASweepWaits) {
  Json sweep = SweepJson("s3", "running");
  sweep["waiting_reason"] = "needs an executor with gpu=h100, but none has it (known labels: none)";
  server_.AnswerPost("/sweeps", sweep, 201);
  const Ran ran = Attune({"sweep", "create", folder_.Write("sweep.yaml", "name: x\n")});
  EXPECT_EQ(ran.out, "s3\n");
  EXPECT_THAT(ran.err, HasSubstr("gpu=h100"));
}

}  // namespace
}  // namespace attune::cli
