#include "executor/gang/gang.h"

#include <fcntl.h>
#include <signal.h>

#include <cmath>

#include <nlohmann/json.hpp>

#include "system/unique_fd.h"
#include "tests/unit/executor/harness.h"

namespace attune::gang {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

class GangTest : public GangFixture {
 protected:
  // Line n of the rank's log, from 0; workers print the lines that they receive.
  nlohmann::json LoggedLine(const GangSpec& spec, int rank, int n) {
    std::istringstream log(Log(spec, rank));
    std::string line;
    for (int i = 0; i <= n; ++i) std::getline(log, line);
    return nlohmann::json::parse(line, nullptr, false);
  }
};

TEST_F(GangTest, AProgramWithoutTheChannelFinishesWithExitZero) {
  const GangSpec spec = Script("echo trained; exit 0", 2);
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_EQ(Log(spec, 0), "trained\n");
  EXPECT_EQ(Log(spec, 1), "trained\n");
  EXPECT_EQ(Pids(spec).size(), 2u);
}

TEST_F(GangTest, StartLineCarriesTheConfigurationExactlyAndInOrder) {
  GangSpec spec = PlainWorker({}, 2);
  spec.config = {{"lr", 0.1},
                 {"width", int64_t{32}},
                 {"one", 1.0},
                 {"tiny", 4.9406564584124654e-324},
                 {"optimizer", std::string("sgd")},
                 {"nesterov", true}};
  spec.seed = (uint64_t{1} << 53) - 1;
  spec.milestone = 3;
  spec.max_step = 27;
  spec.resume = Resume{9, "/somewhere/step-9-attempt-1", "sha256:ab"};
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);

  EXPECT_THAT(Log(spec, 1), HasSubstr(R"("config":{"lr":0.1,"width":32,"one":1.0,"tiny":5e-324,)"
                                      R"("optimizer":"sgd","nesterov":true})"));
  const auto start = LoggedLine(spec, 1, 0);
  EXPECT_EQ(start["type"], "start");
  EXPECT_EQ(start["protocol"], 1);
  EXPECT_EQ(start["sweep"], "s1");
  EXPECT_EQ(start["trial"], 0);
  EXPECT_EQ(start["attempt"], 1);
  EXPECT_EQ(start["rank"], 1);
  EXPECT_EQ(start["world_size"], 2);
  EXPECT_EQ(start["local_world_size"], 2);
  EXPECT_EQ(start["device"], "cpu");
  EXPECT_EQ(start["devices"], nlohmann::json::array({"cpu"}));
  EXPECT_EQ(start["seed"], 9007199254740991);
  EXPECT_EQ(start["milestone"], 3);
  EXPECT_EQ(start["max_step"], 27);
  EXPECT_EQ(start["checkpoint_dir"], spec.checkpoint_dir.string());
  EXPECT_EQ(start["resume"]["step"], 9);
  EXPECT_EQ(start["resume"]["digest"], "sha256:ab");
  EXPECT_EQ(start["resume"]["path"], "/somewhere/step-9-attempt-1");
}

TEST_F(GangTest, FreshStartHasNoResume) {
  const GangSpec spec = PlainWorker({});
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_FALSE(LoggedLine(spec, 0, 0).contains("resume"));
}

TEST_F(GangTest, NumbersDevicesAmongTheGpusOfTheGang) {
  GangSpec spec = PlainWorker({"env:CUDA_VISIBLE_DEVICES"}, 2);
  spec.ranks[0].gpus = {5};
  spec.ranks[1].gpus = {2};
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_EQ(LoggedLine(spec, 0, 0)["device"], "cuda:0");
  EXPECT_EQ(LoggedLine(spec, 1, 0)["device"], "cuda:1");
  EXPECT_THAT(Log(spec, 1), HasSubstr("CUDA_VISIBLE_DEVICES=5,2\n"));
}

TEST_F(GangTest, TheFirstGpuOfARankHasTheIndexOfItsLocalRank) {
  GangSpec spec = PlainWorker({"env:CUDA_VISIBLE_DEVICES"}, 2);
  spec.ranks[0].gpus = {0, 1};
  spec.ranks[1].gpus = {2, 3};
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_THAT(Log(spec, 0), HasSubstr("CUDA_VISIBLE_DEVICES=0,2,1,3\n"));
  EXPECT_THAT(Log(spec, 1), HasSubstr("CUDA_VISIBLE_DEVICES=0,2,1,3\n"));
  EXPECT_EQ(LoggedLine(spec, 0, 0)["device"], "cuda:0");
  EXPECT_EQ(LoggedLine(spec, 1, 0)["device"], "cuda:1");
  EXPECT_EQ(LoggedLine(spec, 0, 0)["devices"], nlohmann::json::array({"cuda:0", "cuda:2"}));
  EXPECT_EQ(LoggedLine(spec, 1, 0)["devices"], nlohmann::json::array({"cuda:1", "cuda:3"}));
}

// Sets a variable of this process for its lifetime.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

TEST_F(GangTest, NumbersGpusAmongTheOnesTheExecutorMayUse) {
  const Variable given("CUDA_VISIBLE_DEVICES", "4,GPU-5a3f,6");
  GangSpec spec = PlainWorker({"env:CUDA_VISIBLE_DEVICES"});
  spec.ranks[0].gpus = {1, 0};
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_THAT(Log(spec), HasSubstr("CUDA_VISIBLE_DEVICES=GPU-5a3f,4\n"));

  GangSpec share = PlainWorker({"env:CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"});
  share.ranks[0].gpus = {1};
  share.ranks[0].gpu_percent = 25;
  EXPECT_EQ(Run(share).outcome, Outcome::kFinished);
  EXPECT_THAT(Log(share), HasSubstr("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25\n"));

  GangSpec beyond = PlainWorker({});
  beyond.ranks[0].gpus = {3};
  const Failure failure = RunToFailure(beyond);
  EXPECT_EQ(failure.kind, FailureKind::kStart);
  EXPECT_THAT(failure.message, HasSubstr("GPU 3 "));
}

TEST_F(GangTest, NcclStaysOnLoopbackWithinAHostUnlessToldOtherwise) {
  GangSpec spec = PlainWorker({"env:NCCL_SOCKET_IFNAME"});
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_THAT(Log(spec), HasSubstr("NCCL_SOCKET_IFNAME=(unset)\n")) << "the gang has no GPU";

  GangSpec one_host = PlainWorker({"env:NCCL_SOCKET_IFNAME"});
  one_host.ranks[0].gpus = {0};
  GangSpec told = one_host;
  EXPECT_EQ(Run(one_host).outcome, Outcome::kFinished);
  EXPECT_THAT(Log(one_host), HasSubstr("NCCL_SOCKET_IFNAME=lo\n"));

  told.attempt.attempt = 2;
  told.attempt_dir = folders_.Attempt(told.attempt);
  told.program.environment = {{"NCCL_SOCKET_IFNAME", "eth1"}};
  EXPECT_EQ(Run(told).outcome, Outcome::kFinished);
  EXPECT_THAT(Log(told), HasSubstr("NCCL_SOCKET_IFNAME=eth1\n"));
}

TEST_F(GangTest, GangWithoutGpusSeesNone) {
  const GangSpec spec = PlainWorker({"env:CUDA_VISIBLE_DEVICES"});
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_THAT(Log(spec), HasSubstr("CUDA_VISIBLE_DEVICES=\n"));
}

TEST_F(GangTest, RanksSeeTheirRankAndTheSweepsVariablesButNoToken) {
  setenv("ATTUNE_TOKEN", "secret", 1);
  GangSpec spec = PlainWorker({"env:ATTUNE_RANK", "env:ATTUNE_WORLD_SIZE", "env:ATTUNE_SWEEP",
                               "env:ATTUNE_TRIAL_DIR", "env:COLOUR", "env:ATTUNE_TOKEN", "cwd"},
                              2);
  spec.program.environment = {{"COLOUR", "red"}, {"ATTUNE_RANK", "overridden"}};
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  unsetenv("ATTUNE_TOKEN");
  EXPECT_TRUE(std::filesystem::is_directory(spec.files_dir));
  EXPECT_THAT(Log(spec, 1),
              HasSubstr("ATTUNE_RANK=1\nATTUNE_WORLD_SIZE=2\nATTUNE_SWEEP=s1\n"
                        "ATTUNE_TRIAL_DIR=" +
                        spec.files_dir.string() + "\nCOLOUR=red\nATTUNE_TOKEN=(unset)\n" +
                        dir_.path().string() + "\n"));
}

TEST_F(GangTest, WritesTheConfigurationFileIfTheCommandUsesIt) {
  GangSpec spec = Spec({"/bin/sh", "-c", "cat \"$1\"", "sh", "${config}"});
  spec.config = {{"lr", 0.5}, {"name", std::string("a \"b\"")}};
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_EQ(Log(spec), "{\"lr\":0.5,\"name\":\"a \\\"b\\\"\"}\n");
}

TEST_F(GangTest, RanksInheritNoOtherDescriptors) {
  const UniqueFd careless(open("/dev/null", O_RDONLY));  // no close-on-exec
  const GangSpec spec = Script("ls /proc/self/fd | tr '\\n' ' '");
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_EQ(Log(spec), "0 1 2 3 4 ");  // 3 is the channel, 4 the folder that ls reads
}

TEST_F(GangTest, ReportsAndCheckpointsBecomeFactsInOrder) {
  GangSpec spec = PlainWorker({});
  const std::string path = (spec.checkpoint_dir / "step-1-attempt-1").string();
  spec.program.command.insert(
      spec.program.command.end(),
      {"report:1", "checkpoint:" + path,
       R"(raw:{"type":"report","step":2,"seconds":1,"metrics":{"a":"nan","b":"-inf","c":3}})"});
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);

  EXPECT_EQ(facts_.Wait<Report>(spec.attempt, 1)->step, 1);
  const auto report = facts_.Wait<Report>(spec.attempt, 2);
  ASSERT_EQ(report->metrics.size(), 3u);
  EXPECT_TRUE(std::isnan(report->metrics[0].second));
  EXPECT_THAT(report->metrics[1], Pair("b", -INFINITY));
  EXPECT_THAT(report->metrics[2], Pair("c", 3.0));
  const auto checkpoint = facts_.Wait<CheckpointSaved>(spec.attempt);
  EXPECT_EQ(checkpoint->path, path);
  EXPECT_EQ(checkpoint->bytes, 12u);
}

TEST_F(GangTest, NumbersMetricsLoggedBetweenReports) {
  const GangSpec spec = PlainWorker({"log:0.5", "log:0.25", "report:1", "log:0.25"});
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  const auto last = facts_.Wait<NumberedLog>(spec.attempt, 3);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->number, 3);
  EXPECT_EQ(last->logged.step, 0.25);
  EXPECT_EQ(last->logged.metrics.front(), std::pair(std::string("loss"), 0.5));
}

TEST_F(GangTest, ReportsTheFirstStepOnceWhenEveryRankHasMadeIt) {
  const GangSpec spec =
      PlainWorker({"0/progress:0", "0/progress:1", "1/progress:1", "progress:2"}, 2);
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_EQ(facts_.Count<FirstStep>(spec.attempt), 1);
}

TEST_F(GangTest, ReportsNoFirstStepWhileARankHasNotMadeIt) {
  const GangSpec spec = PlainWorker({"0/progress:0"}, 2);
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_EQ(facts_.Count<FirstStep>(spec.attempt), 0);
}

TEST_F(GangTest, RendezvousGoesFromRankZeroToTheOthers) {
  const GangSpec spec = PlainWorker({"0/rendezvous:4321", "1/read", "2/read"}, 3);
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_EQ(LoggedLine(spec, 1, 1)["port"], 4321);
  EXPECT_EQ(LoggedLine(spec, 2, 1)["host"], "127.0.0.1");
}

TEST_F(GangTest, RankZeroOnSeveralHostsGetsItsAddressAndSharesItsRendezvous) {
  GangSpec spec = PlainWorker({"0/env:MASTER_ADDR", "0/env:GLOO_SOCKET_IFNAME",
                               "0/env:NCCL_SOCKET_IFNAME", "0/rendezvous:4321"});
  spec.world_size = 2;
  spec.host = {"127.0.0.2", "lo"};
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_EQ(LoggedLine(spec, 0, 0)["address"], "127.0.0.2");
  EXPECT_THAT(Log(spec), HasSubstr("MASTER_ADDR=127.0.0.2\nGLOO_SOCKET_IFNAME=lo\n"
                                   "NCCL_SOCKET_IFNAME==lo\n"));
  const auto first = facts_.Wait<SharedRendezvous>(spec.attempt, 1);
  const auto second = facts_.Wait<SharedRendezvous>(spec.attempt, 2);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->address, "127.0.0.2");
  EXPECT_GT(first->master_port, 0);
  EXPECT_FALSE(first->rank_zero);
  EXPECT_EQ(second->master_port, first->master_port);
  ASSERT_TRUE(second->rank_zero);
  EXPECT_EQ(second->rank_zero->port, 4321);
}

TEST_F(GangTest, RanksGetTheRendezvousOfRankZeroOnAnotherHost) {
  GangSpec spec = PlainWorker({"2/env:MASTER_PORT", "2/env:GROUP_RANK", "read"}, 4);
  spec.ranks.erase(spec.ranks.begin(), spec.ranks.begin() + 2);
  spec.node_rank = 1;
  spec.host = {"127.0.0.3", "lo"};
  spec.rendezvous = SharedRendezvous{"127.0.0.2", 4000, {}};
  supervisor_->Run(spec);
  ASSERT_TRUE(facts_.Wait<Started>(spec.attempt));
  supervisor_->SetRendezvous(spec.attempt, {"127.0.0.2", 4321});
  supervisor_->SetRendezvous(spec.attempt, {"127.0.0.2", 4322});  // a second call has no effect
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kFinished);
  EXPECT_THAT(Log(spec, 2), HasSubstr("MASTER_PORT=4000\nGROUP_RANK=1\n"));
  EXPECT_THAT(Log(spec, 3), HasSubstr("\"port\":4321"));
  EXPECT_EQ(facts_.Count<SharedRendezvous>(spec.attempt), 0);
}

TEST_F(GangTest, AGangOnOneHostSharesNoRendezvous) {
  GangSpec spec = PlainWorker({"0/rendezvous:4321", "1/env:MASTER_ADDR"}, 2);
  spec.host = {"127.0.0.2", "lo"};
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_THAT(Log(spec, 1), HasSubstr("MASTER_ADDR=127.0.0.1\n"));
  EXPECT_EQ(facts_.Count<SharedRendezvous>(spec.attempt), 0);
}

TEST_F(GangTest, AVerdictReachesRankZeroOnceAtItsStep) {
  GangSpec spec =
      PlainWorker({"report:1", "report:3", "verdict", "report:4", "report:9", "verdict", "exit:1"});
  spec.milestone = 3;
  supervisor_->Run(spec);
  ASSERT_TRUE(facts_.Wait<Report>(spec.attempt, 2));
  const Verdict onwards{.step = 3, .action = Action::kContinue, .milestone = 9};
  supervisor_->SetVerdict(spec.attempt,
                          {.step = 2, .milestone = 3});  // not the step at which it waits
  supervisor_->SetVerdict(spec.attempt, onwards);
  supervisor_->SetVerdict(spec.attempt, onwards);
  ASSERT_TRUE(facts_.Wait<Report>(spec.attempt, 4));
  supervisor_->SetVerdict(spec.attempt, onwards);
  supervisor_->SetVerdict(spec.attempt, {.step = 9, .action = Action::kPause});
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kFinished);
  EXPECT_EQ(
      LoggedLine(spec, 0, 1),
      nlohmann::json::parse(R"({"type":"verdict","step":3,"action":"continue","milestone":9})"));
  EXPECT_EQ(LoggedLine(spec, 0, 2)["action"], "pause");
}

TEST_F(GangTest, EndsAProgramThatReportsAfterAStop) {
  GangSpec spec = PlainWorker({"report:3", "read", "report:4", "hang"});
  spec.milestone = 3;
  supervisor_->Run(spec);
  ASSERT_TRUE(facts_.Wait<Report>(spec.attempt));
  supervisor_->SetVerdict(spec.attempt, {.step = 3, .action = Action::kStop});
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kFinished);
  EXPECT_EQ(facts_.Count<Report>(spec.attempt), 1);
}

TEST_F(GangTest, EndsAProgramThatNeverWaitsAtItsNextReport) {
  GangSpec spec = PlainWorker(
      {R"(raw:{"type":"report","step":3,"seconds":0,"metrics":{},"waits":false})", "read",
       R"(raw:{"type":"report","step":4,"seconds":0,"metrics":{},"waits":false})", "hang"});
  spec.milestone = 3;
  supervisor_->Run(spec);
  ASSERT_TRUE(facts_.Wait<Report>(spec.attempt));
  supervisor_->SetVerdict(spec.attempt, {.step = 3, .action = Action::kStop});
  supervisor_->Yield(spec.attempt);  // sends a line that the worker waits for
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kFinished);
}

TEST_F(GangTest, TellsAProgramThatDidNotWaitToLeaveAtItsNextWait) {
  GangSpec spec =
      PlainWorker({R"(raw:{"type":"report","step":3,"seconds":0,"metrics":{},"waits":false})",
                   "ask:5", "verdict"});
  spec.milestone = 3;
  supervisor_->Run(spec);
  ASSERT_TRUE(facts_.Wait<Report>(spec.attempt, 2));
  supervisor_->SetVerdict(spec.attempt, {.step = 3, .action = Action::kStop});
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kFinished);
  EXPECT_EQ(LoggedLine(spec, 0, 1)["action"], "stop");
  EXPECT_EQ(LoggedLine(spec, 0, 1)["step"], 5);
}

TEST_F(GangTest, KeepsAVerdictThatComesBeforeTheReport) {
  GangSpec spec = PlainWorker({"report:3", "verdict", "exit:1"});
  spec.milestone = 3;
  supervisor_->Run(spec);
  supervisor_->SetVerdict(spec.attempt, {.step = 3, .action = Action::kStop});
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kFinished);
}

TEST_F(GangTest, WaitsForAVerdictAtMaxStepWithoutAMilestone) {
  GangSpec spec = PlainWorker({"report:5", "verdict", "exit:1"});
  spec.milestone = 0;
  spec.max_step = 5;
  supervisor_->Run(spec);
  supervisor_->SetVerdict(spec.attempt, {.step = 5, .action = Action::kStop});
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kFinished);
}

TEST_F(GangTest, OnlyMilestonesWaitBeyondAnExtendedMaxStep) {
  GangSpec spec = PlainWorker({"report:3", "verdict", "report:4", "report:9", "verdict", "exit:1"});
  spec.milestone = 3;
  spec.max_step = 3;
  supervisor_->Run(spec);
  supervisor_->SetVerdict(spec.attempt, {.step = 3, .action = Action::kContinue, .milestone = 9});
  const auto beyond = facts_.Wait<Report>(spec.attempt, 2);
  const auto at = facts_.Wait<Report>(spec.attempt, 3);
  ASSERT_TRUE(beyond && at);
  EXPECT_EQ(beyond->waits, false);
  EXPECT_EQ(at->waits, true);
  supervisor_->SetVerdict(spec.attempt, {.step = 9, .action = Action::kStop});
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kFinished);
}

TEST_F(GangTest, AReportThatSaysItWaitsGetsAVerdictAtAnyStep) {
  const GangSpec spec = PlainWorker({"report:1", "ask:2", "verdict", "exit:1"});
  supervisor_->Run(spec);
  const auto plain = facts_.Wait<Report>(spec.attempt, 1);
  const auto waiting = facts_.Wait<Report>(spec.attempt, 2);
  ASSERT_TRUE(plain && waiting);
  EXPECT_EQ(plain->waits, false);
  EXPECT_EQ(waiting->waits, true);
  supervisor_->SetVerdict(spec.attempt, {.step = 2, .action = Action::kPause});
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kFinished);
}

TEST_F(GangTest, AReportThatDoesNotSaySoWaitsAtItsMilestone) {
  GangSpec spec = PlainWorker({"report:2", "report:3", "verdict", "exit:1"});
  spec.milestone = 3;
  supervisor_->Run(spec);
  const auto before = facts_.Wait<Report>(spec.attempt, 1);
  const auto at = facts_.Wait<Report>(spec.attempt, 2);
  ASSERT_TRUE(before && at);
  EXPECT_EQ(before->waits, false);
  EXPECT_EQ(at->waits, true);
  supervisor_->SetVerdict(spec.attempt, {.step = 3, .action = Action::kStop});
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kFinished);
}

TEST_F(GangTest, NoReportWaitsWithoutAMilestone) {
  GangSpec spec = PlainWorker({"report:1", "report:2"});
  spec.milestone = 0;
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_EQ(facts_.Wait<Report>(spec.attempt, 2)->waits, false);
}

TEST_F(GangTest, YieldReachesRankZeroOnceUntilTheNextVerdict) {
  const GangSpec spec = PlainWorker(
      {"0/report:1", "0/read", "0/ask:2", "0/verdict", "0/read", "0/ask:3", "0/verdict"}, 2);
  supervisor_->Run(spec);
  ASSERT_TRUE(facts_.Wait<Report>(spec.attempt, 1));
  supervisor_->Yield(spec.attempt);
  supervisor_->Yield(spec.attempt);
  ASSERT_TRUE(facts_.Wait<Report>(spec.attempt, 2));
  supervisor_->Yield(spec.attempt);
  supervisor_->SetVerdict(spec.attempt, {.step = 2, .action = Action::kContinue, .milestone = 9});
  supervisor_->Yield(spec.attempt);
  ASSERT_TRUE(facts_.Wait<Report>(spec.attempt, 3));
  supervisor_->SetVerdict(spec.attempt, {.step = 3, .action = Action::kPause});
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kFinished);
  EXPECT_EQ(LoggedLine(spec, 0, 1)["type"], "yield");
  EXPECT_EQ(LoggedLine(spec, 0, 2)["action"], "continue");
  EXPECT_EQ(LoggedLine(spec, 0, 3)["type"], "yield");
  EXPECT_EQ(LoggedLine(spec, 0, 4)["action"], "pause");
}

TEST_F(GangTest, YieldBeforeTheGangRunsFollowsTheStart) {
  const GangSpec spec = PlainWorker({"read"});
  supervisor_->Run(spec);
  supervisor_->Yield(spec.attempt);
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kFinished);
  EXPECT_EQ(LoggedLine(spec, 0, 1)["type"], "yield");
}

TEST_F(GangTest, CancelKillsEveryRankAndItsDescendants) {
  const GangSpec spec = PlainWorker({"grandchild", "0/report:1", "hang"}, 2);
  supervisor_->Run(spec);
  ASSERT_TRUE(facts_.Wait<Report>(spec.attempt));
  supervisor_->Cancel(spec.attempt, CancelReason::kUnwanted);
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kCancelled);
  EXPECT_NE(kill(NumberAfter(Log(spec), "grandchild"), 0), 0);
  for (const pid_t pid : Pids(spec)) EXPECT_NE(kill(pid, 0), 0);
}

TEST_F(GangTest, AFinishedGangLeavesNoGrandchildBehind) {
  const GangSpec spec = PlainWorker({"grandchild"});
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_NE(kill(NumberAfter(Log(spec), "grandchild"), 0), 0);
}

TEST_F(GangTest, ExplainsWhyASilentProgramReportedNothing) {
  EXPECT_THAT(Run(Script("exit 0")).silence, HasSubstr("env -i"));
  EXPECT_EQ(Run(PlainWorker({"progress:1"})).silence, "") << "the program used the channel";
  EXPECT_EQ(Run(PlainWorker({"report:1"})).silence, "");
}

TEST_F(GangTest, ExplainsThatABackgroundProgramWasKilled) {
  const GangSpec silent = Script("sleep 1000 & sleep 1000 &");
  EXPECT_THAT(Run(silent).silence, AllOf(HasSubstr("2 processes"), HasSubstr("env -i")));
  EXPECT_THAT(Log(silent), HasSubstr("[attune: 2 processes "));

  const GangSpec spoke = PlainWorker({"progress:1", "grandchild"});
  EXPECT_THAT(Run(spoke).silence, AllOf(HasSubstr("1 process"), Not(HasSubstr("env -i"))));
  const GangSpec reported = PlainWorker({"report:1", "grandchild"});
  EXPECT_EQ(Run(reported).silence, "");
  EXPECT_THAT(Log(reported), Not(HasSubstr("[attune")));
}

TEST_F(GangTest, ALostLeaseIsAFailureOfKindLease) {
  const GangSpec spec = PlainWorker({"hang"});
  supervisor_->Run(spec);
  ASSERT_TRUE(facts_.Wait<Started>(spec.attempt));
  supervisor_->Cancel(spec.attempt, CancelReason::kLeaseLost);
  EXPECT_EQ(WaitForEnded(spec).failure->kind, FailureKind::kLease);
}

TEST_F(GangTest, DestroyingTheSupervisorEndsItsGangsFirst) {
  const GangSpec spec = PlainWorker({"hang"}, 2);
  supervisor_->Run(spec);
  ASSERT_TRUE(facts_.Wait<Started>(spec.attempt));
  supervisor_.reset();
  EXPECT_EQ(facts_.Count<Ended>(spec.attempt), 1);
}

TEST_F(GangTest, AppendsToTheLogOfASecondAttemptInTheSameFolder) {
  GangSpec spec = Script("echo line");
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  spec.attempt.epoch = 2;
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_EQ(Log(spec), "line\nline\n");
}

}  // namespace
}  // namespace attune::gang
