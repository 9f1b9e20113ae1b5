#include "executor/gang/launcher.h"

#include <signal.h>

#include "tests/unit/executor/harness.h"

namespace attune::gang {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class LauncherTest : public GangFixture {
 protected:
  LauncherTest() { std::filesystem::copy_file(ATTUNE_TEST_LAUNCHABLE_WORKER, program_); }

  GangSpec Worker(std::vector<std::string> words, int world_size = 1) {
    words.insert(words.begin(), program_);
    return Spec(std::move(words), world_size);
  }

  // Runs a rank and returns the process that started it.
  pid_t ParentOfARank(const EnvironmentChanges& environment = {}) {
    GangSpec spec = Worker({"parent"});
    spec.program.environment = environment;
    EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
    return NumberAfter(Log(spec), "parent");
  }

  std::filesystem::path program_ = dir_.path() / "worker";
};

TEST_F(LauncherTest, GangsAreForkedFromOneLauncher) {
  const pid_t launcher = ParentOfARank();
  EXPECT_NE(launcher, getpid());
  EXPECT_EQ(ParentOfARank(), launcher);
}

TEST_F(LauncherTest, WarmLauncherIsTheOneThatGangsGet) {
  supervisor_->Warm({.command = {program_}});
  EXPECT_NE(ParentOfARank(), getpid());
}

TEST_F(LauncherTest, ProgramWithoutTheNoteIsSpawned) {
  const GangSpec spec = PlainWorker({"parent"});
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_EQ(NumberAfter(Log(spec), "parent"), getpid());
}

TEST_F(LauncherTest, VariablesReadWhileLoadingWantAFreshStart) {
  EXPECT_EQ(ParentOfARank({{"OMP_NUM_THREADS", "1"}}), getpid());
  EXPECT_NE(ParentOfARank({{"COLOUR", "red"}}), getpid());
}

TEST_F(LauncherTest, ForkedRanksGetTheirFolderVariablesAndChannel) {
  GangSpec spec = Worker({"env:COLOUR", "env:ATTUNE_RANK", "env:ATTUNE_LAUNCHER_FD", "cwd",
                          "0/rendezvous:77", "1/read"},
                         2);
  spec.program.environment = {{"COLOUR", "red"}};
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_THAT(Log(spec, 1),
              AllOf(HasSubstr("COLOUR=red\nATTUNE_RANK=1\nATTUNE_LAUNCHER_FD=(unset)"),
                    HasSubstr(dir_.path().string()), HasSubstr("77")));
}

TEST_F(LauncherTest, FailuresOfForkedRanksAreToldAlike) {
  const Failure exit = RunToFailure(Worker({"1/error:boom", "1/exit:4", "hang"}, 2));
  EXPECT_EQ(exit.rank, 1);
  EXPECT_EQ(exit.exit_code, 4);
  EXPECT_EQ(exit.message, "boom");
  const Failure signal = RunToFailure(Worker({"0/kill:6", "hang"}, 2));
  EXPECT_EQ(signal.rank, 0);
  EXPECT_EQ(signal.signal, SIGABRT);
}

TEST_F(LauncherTest, CancelledGangLeavesNothingBehind) {
  const GangSpec spec = Worker({"grandchild", "0/report:1", "hang"}, 2);
  supervisor_->Run(spec);
  ASSERT_TRUE(facts_.Wait<Report>(spec.attempt));
  supervisor_->Cancel(spec.attempt, CancelReason::kUnwanted);
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kCancelled);
  EXPECT_NE(kill(NumberAfter(Log(spec), "grandchild"), 0), 0);
}

TEST_F(LauncherTest, RebuiltProgramGetsALauncherOfItsOwn) {
  const pid_t before = ParentOfARank();
  std::filesystem::remove(program_);
  std::filesystem::copy_file(ATTUNE_TEST_LAUNCHABLE_WORKER, program_);
  EXPECT_NE(ParentOfARank(), before);
}

TEST_F(LauncherTest, DeadLauncherTakesItsGangsAndTheNextOneGetsAnother) {
  const pid_t before = ParentOfARank();
  const GangSpec bystander = Worker({"hang"}, 2);
  supervisor_->Run(bystander);
  ASSERT_TRUE(facts_.Wait<Started>(bystander.attempt));
  const Failure failure = RunToFailure(Worker({"kill-launcher", "hang"}));
  EXPECT_EQ(failure.kind, FailureKind::kSignal);
  EXPECT_EQ(failure.rank, -1);
  EXPECT_THAT(failure.message, AllOf(HasSubstr("the launcher of " + program_.string()),
                                     HasSubstr("was killed by signal 9")));
  EXPECT_EQ(WaitForEnded(bystander).outcome, Outcome::kFailed);
  const pid_t after = ParentOfARank();
  EXPECT_NE(after, before);
  EXPECT_NE(after, getpid());
}

TEST_F(LauncherTest, LauncherThatLeavesBeforeItIsReadyFailsTheStart) {
  WriteFile(program_.string() + ".broken", "");
  const Failure failure = RunToFailure(Worker({}));
  EXPECT_EQ(failure.kind, FailureKind::kStart);
  EXPECT_THAT(failure.message, HasSubstr("left with exit code 7"));
}

TEST_F(LauncherTest, LauncherThatDoesNotAnswerFailsTheStartAndIsReplaced) {
  StartSupervisor({.launcher = {.fork_timeout = std::chrono::milliseconds(100)}});
  WriteFile(program_.string() + ".mute", "");
  const Failure failure = RunToFailure(Worker({}, 2));
  EXPECT_EQ(failure.kind, FailureKind::kStart);
  EXPECT_THAT(failure.message, HasSubstr("did not answer a fork request for 100 ms"));
  std::filesystem::remove(program_.string() + ".mute");
  EXPECT_NE(ParentOfARank(), 0);
}

TEST_F(LauncherTest, CommandTooLargeForAPacketIsSpawned) {
  GangSpec spec = Worker({"parent"});
  spec.program.environment = {{"LARGE", std::string(100'000, 'x')}};
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_EQ(NumberAfter(Log(spec), "parent"), getpid());
}

}  // namespace
}  // namespace attune::gang
