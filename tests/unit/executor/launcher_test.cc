#include "executor/gang/launcher.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "executor/processes/environment.h"
#include "system/processes.h"
#include "system/unique_fd.h"
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

TEST_F(LauncherTest, ForksGangsFromOneLauncher) {
  const pid_t launcher = ParentOfARank();
  EXPECT_NE(launcher, getpid());
  EXPECT_EQ(ParentOfARank(), launcher);
}

TEST_F(LauncherTest, GangsUseAPrestartedLauncher) {
  supervisor_->PrestartLauncher(
      {.command = {program_, "parent"}, .working_directory = dir_.path()});
  EXPECT_NE(ParentOfARank(), getpid());
}

TEST_F(LauncherTest, SpawnsAProgramWithoutTheNote) {
  const GangSpec spec = PlainWorker({"parent"});
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_EQ(NumberAfter(Log(spec), "parent"), getpid());
}

// A launcher's main() must see the same arguments, variables and folder as a rank's.
TEST_F(LauncherTest, LaunchersGetTheArgumentsVariablesAndFolderOfTheirGangs) {
  const pid_t launcher = ParentOfARank({{"OMP_NUM_THREADS", "1"}});
  const std::filesystem::path process = "/proc/" + std::to_string(launcher);
  EXPECT_EQ(ReadFile(process / "cmdline"), program_.string() + '\0' + "parent" + '\0');
  EXPECT_THAT(ReadFile(process / "environ"), HasSubstr(std::string("OMP_NUM_THREADS=1") + '\0'));
  EXPECT_EQ(std::filesystem::read_symlink(process / "cwd"), dir_.path());
  EXPECT_EQ(ParentOfARank({{"OMP_NUM_THREADS", "1"}}), launcher);
  EXPECT_NE(ParentOfARank({{"OMP_NUM_THREADS", "2"}}), launcher);
  EXPECT_NE(ParentOfARank(), launcher);
}

TEST_F(LauncherTest, SpawnsACommandThatDiffersBetweenTrials) {
  GangSpec spec = Worker({"parent", "print:${param.lr}"});
  spec.config = {{"lr", 0.5}};
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_EQ(NumberAfter(Log(spec), "parent"), getpid());
}

TEST_F(LauncherTest, GangsDoNotWaitForASlowLauncher) {
  StartSupervisor({.launcher = {.ready_wait = std::chrono::milliseconds(50)}});
  const std::string gate = program_.string() + ".gate";
  ASSERT_EQ(mkfifo(gate.c_str(), 0600), 0);
  EXPECT_EQ(ParentOfARank(), getpid());
  const UniqueFd opened(open(gate.c_str(), O_WRONLY | O_CLOEXEC));  // waits for the launcher
  std::filesystem::remove(gate);
  // Gangs use the launcher when it is ready, even after a long load.
  pid_t parent = getpid();
  while (parent == getpid() && !HasFailure()) parent = ParentOfARank();
  EXPECT_NE(parent, getpid());
}

TEST_F(LauncherTest, EndsAnUnusedLauncher) {
  StartSupervisor({.launcher = {.idle_timeout = std::chrono::milliseconds(1)}});
  const pid_t launcher = ParentOfARank();
  const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, launcher, 0)));
  EXPECT_TRUE(!pidfd || WaitForEnd(pidfd.get()));  // it may have ended already
  EXPECT_NE(launcher, getpid());
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

TEST_F(LauncherTest, LauncherVariablesDoNotReachRanksUnlessTheUserSetsThem) {
  const std::filesystem::path ours = "/proc/" + std::to_string(ParentOfARank()) + "/environ";
  EXPECT_THAT(ReadFile(ours),
              AllOf(HasSubstr(std::string("LD_BIND_NOW=1") + '\0'),
                    HasSubstr(std::string("GLIBC_TUNABLES=glibc.malloc.hugetlb=1") + '\0')));
  const std::vector<std::string> words{"env:LD_BIND_NOW", "env:GLIBC_TUNABLES"};
  const GangSpec plain = Worker(words);
  EXPECT_EQ(Run(plain).outcome, Outcome::kFinished);
  EXPECT_THAT(Log(plain), HasSubstr("LD_BIND_NOW=(unset)\nGLIBC_TUNABLES=(unset)"));

  GangSpec spec = Worker(words);
  spec.program.environment = {{"GLIBC_TUNABLES", "glibc.malloc.perturb=0"}};
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_THAT(Log(spec), HasSubstr("LD_BIND_NOW=(unset)\nGLIBC_TUNABLES=glibc.malloc.perturb=0"));
}

TEST_F(LauncherTest, FailuresOfForkedRanksAreReportedLikeOthers) {
  const Failure exit = RunToFailure(Worker({"1/error:boom", "1/exit:4", "hang"}, 2));
  EXPECT_EQ(exit.rank, 1);
  EXPECT_EQ(exit.exit_code, 4);
  EXPECT_EQ(exit.message, "rank 1: boom");
  const Failure signal = RunToFailure(Worker({"0/kill:6", "hang"}, 2));
  EXPECT_EQ(signal.rank, 0);
  EXPECT_EQ(signal.signal, SIGABRT);
}

TEST_F(LauncherTest, NamesTheRankThatEndedFirstWhateverTheLauncherReportsFirst) {
  const GangSpec spec = Worker({"parent", "progress:0", "hang"}, 2);
  supervisor_->Run(spec);
  ASSERT_TRUE(facts_.Wait<FirstStep>(spec.attempt));
  const pid_t launcher = NumberAfter(Log(spec), "parent");
  kill(launcher, SIGSTOP);
  for (const auto& [rank, signal] : {std::pair{1, SIGKILL}, std::pair{0, SIGSEGV}}) {
    const pid_t pid = Pids(spec)[rank];
    const UniqueFd end = OpenPidfd(pid);
    kill(pid, signal);
    ASSERT_TRUE(WaitForEnd(end.get()));
  }
  kill(launcher, SIGCONT);
  const Failure failure = WaitForEnded(spec).failure.value_or(Failure{});
  EXPECT_EQ(failure.rank, 1);
  EXPECT_EQ(failure.signal, SIGKILL);
}

TEST_F(LauncherTest, CancelledGangLeavesNothingBehind) {
  const GangSpec spec = Worker({"grandchild", "0/report:1", "hang"}, 2);
  supervisor_->Run(spec);
  ASSERT_TRUE(facts_.Wait<Report>(spec.attempt));
  supervisor_->Cancel(spec.attempt, CancelReason::kUnwanted);
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kCancelled);
  EXPECT_NE(kill(NumberAfter(Log(spec), "grandchild"), 0), 0);
}

TEST_F(LauncherTest, ARebuiltProgramGetsANewLauncher) {
  const pid_t before = ParentOfARank();
  std::filesystem::remove(program_);
  std::filesystem::copy_file(ATTUNE_TEST_LAUNCHABLE_WORKER, program_);
  EXPECT_NE(ParentOfARank(), before);
}

TEST_F(LauncherTest, ADeadLauncherEndsItsGangsAndTheNextGangGetsANewOne) {
  const auto start = [this] {
    GangSpec spec = Worker({"parent", "0/report:1", "hang"}, 2);
    supervisor_->Run(spec);
    EXPECT_TRUE(facts_.Wait<Report>(spec.attempt));
    return spec;
  };
  const GangSpec first = start();
  const GangSpec second = start();
  const pid_t before = NumberAfter(Log(first), "parent");
  ASSERT_NE(before, getpid());
  ASSERT_EQ(NumberAfter(Log(second), "parent"), before);
  kill(before, SIGKILL);
  for (const GangSpec& spec : {first, second}) {
    const Failure failure = WaitForEnded(spec).failure.value_or(Failure{});
    EXPECT_EQ(failure.kind, FailureKind::kSignal);
    EXPECT_EQ(failure.rank, -1);
    EXPECT_THAT(failure.message, AllOf(HasSubstr(program_.string()), HasSubstr("signal 9")));
  }
  const pid_t after = NumberAfter(Log(start()), "parent");
  EXPECT_NE(after, before);
  EXPECT_NE(after, getpid());
}

TEST_F(LauncherTest, SpawnsAProgramWhoseLauncherExitsBeforeItIsReady) {
  WriteFile(program_.string() + ".broken", "");
  EXPECT_EQ(ParentOfARank(), getpid());
  std::filesystem::remove(program_.string() + ".broken");
  EXPECT_EQ(ParentOfARank(), getpid()) << "a broken launcher is not started again";
}

TEST_F(LauncherTest, AFrozenLauncherDoesNotBlockTheEndOfItsGang) {
  StartSupervisor({.timing = {.explain_timeout = std::chrono::milliseconds(100)}});
  const GangSpec spec = Worker({"parent", "progress:0", "hang"}, 2);
  supervisor_->Run(spec);
  ASSERT_TRUE(facts_.Wait<FirstStep>(spec.attempt));
  const pid_t launcher = NumberAfter(Log(spec), "parent");
  ASSERT_EQ(kill(launcher, SIGSTOP), 0);
  supervisor_->Cancel(spec.attempt, CancelReason::kUnwanted);
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kCancelled);
  EXPECT_NE(ParentOfARank(), launcher);
}

TEST_F(LauncherTest, AnUnansweredForkFailsAloneAndTheNextGangIsSpawned) {
  StartSupervisor({.launcher = {.fork_timeout = std::chrono::milliseconds(100)}});
  const GangSpec bystander = Worker({"hang"}, 2);
  supervisor_->Run(bystander);
  const std::vector<pid_t> pids = Pids(bystander);
  ASSERT_EQ(pids.size(), 2u);
  WriteFile(program_.string() + ".mute", "");
  const Failure failure = RunToFailure(Worker({"hang"}, 2));
  EXPECT_EQ(failure.kind, FailureKind::kHost) << "not the trial's failure";
  EXPECT_THAT(failure.message, AllOf(HasSubstr(program_.string()), HasSubstr("100 ms")));
  const GangSpec next = Worker({"hang"});
  supervisor_->Run(next);
  ASSERT_EQ(Pids(next).size(), 1u);
  for (const pid_t pid : pids) EXPECT_EQ(kill(pid, 0), 0) << "a bystander was torn down";
  EXPECT_EQ(facts_.Count<Ended>(bystander.attempt), 0);
}

TEST_F(LauncherTest, SpawnsACommandThatIsTooLargeForAPacket) {
  GangSpec spec = Worker({"parent"});
  spec.program.environment = {{"LARGE", std::string(100'000, 'x')}};
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_EQ(NumberAfter(Log(spec), "parent"), getpid());
}

}  // namespace
}  // namespace attune::gang
