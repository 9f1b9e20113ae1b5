// A training program run by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "system/processes.h"
#include "tests/support/scratch_folder.h"
#include "tests/unit/trainable/process.h"

namespace attune::inline sdk::trainable::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Standalone, TrainsOnAllWorkersAndPrintsOneLinePerReport) {
  const Ended ended = RunByHand({"--workers", "2", "--max-step", "3"});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.output, AllOf(HasSubstr("step 1  args 0  ranks 2  step 1"),
                                  HasSubstr("step 3 "), HasSubstr("after step 3")));
}

TEST(Standalone, ARankThatThrowsEndsAllAndIsNamed) {
  const Ended ended = RunByHand({"--workers", "3", "--config", "mode=throws"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.output, HasSubstr("rank 1 failed: exit code 1: a teapot"));
}

TEST(Standalone, ARankThatIsKilledEndsAllAndIsNamed) {
  const Ended ended = RunByHand({"--workers", "2", "--config", "mode=killed"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.output, AllOf(HasSubstr("rank 1 failed: "), HasSubstr("signal 9 (Killed)")));
}

TEST(Standalone, AFailureInSetupIsNamed) {
  const Ended ended = RunByHand({"--config", "mode=setup_fails"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.output, HasSubstr("rank 0 failed: exit code 1: no dataset /data/none"));
}

TEST(Standalone, AnInitialisationHookRunsOnEveryRankBeforeSetup) {
  const Ended ended =
      RunByHand({"--workers", "2", "--config", "mode=hook", "--max-step", "1", "--", "one"});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("hook: rank 0 of 2, local 0 of 2, on cpu, seed 0, args 1"),
                    HasSubstr("hook: rank 1 of 2"), HasSubstr("threads: 3")));
}

TEST(Standalone, TheHookOfTheDocsRuns) {
  const Ended ended =
      RunByHand({"--workers", "2", "--max-step", "1"}, {{"GANG_PROGRAM_FORM", "hooked"}});
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
}

TEST(Standalone, AnInitialisationHookThatThrowsIsNamed) {
  const Ended ended = RunByHand({"--workers", "2", "--config", "mode=hook_fails"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.output, HasSubstr("rank 1 failed: exit code 1: no interface eth7"));
}

TEST(Standalone, DoesNotWaitForAChildThatHoldsAChannel) {
  const Ended ended = RunByHand({"--config", "mode=forks"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.output, HasSubstr("rank 0 failed: exit code 1: forked"));
  EXPECT_LT(ended.took, std::chrono::seconds(15)) << "until the child has ended";
}

// A hanging gang of two with a process that has left its session and cleared its environment. `end`
// ends the gang.
struct Interrupted : Ended {
  std::chrono::milliseconds after{};  // from the call of `end` to the end of all processes
};

Interrupted RunUntilItHangs(const std::function<void(pid_t)>& end,
                            const std::function<void()>& in_child = {}) {
  int hanging = 0;
  auto ended_at = std::chrono::steady_clock::time_point();
  Interrupted run;
  static_cast<Ended&>(run) = RunByHand(
      {"--workers", "2", "--config", "mode=hangs"}, {{"GANG_PROGRAM_LEAVES", "1"}},
      [&](pid_t pid, const std::string& line) {
        if (line != "hanging" || ++hanging != 2) return;
        ended_at = std::chrono::steady_clock::now();
        end(pid);
      },
      in_child);
  run.after = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - ended_at);
  return run;
}

// It takes about 50 ms, but the machine may be busy.
constexpr std::chrono::seconds kAtOnce{4};

class EndingSignal : public ::testing::TestWithParam<int> {};

TEST_P(EndingSignal, EndsAllAndASecondOneChangesNothing) {
  const Interrupted run = RunUntilItHangs([](pid_t pid) {
    kill(pid, GetParam());
    kill(pid, GetParam());
  });
  EXPECT_EQ(run.exit_code, 128 + GetParam());
  EXPECT_THAT(run.output, HasSubstr("after step 0"));
  EXPECT_LT(run.after, kAtOnce);
}

TEST_P(EndingSignal, EndsAllEvenIfTheParentBlocksIt) {
  const Interrupted run = RunUntilItHangs([](pid_t pid) { kill(pid, GetParam()); },
                                          [] {
                                            sigset_t all;
                                            sigfillset(&all);
                                            sigprocmask(SIG_SETMASK, &all, nullptr);
                                          });
  EXPECT_EQ(run.exit_code, 128 + GetParam());
  EXPECT_LT(run.after, kAtOnce);
}

INSTANTIATE_TEST_SUITE_P(Standalone, EndingSignal, ::testing::Values(SIGINT, SIGTERM, SIGHUP));

TEST(Standalone, CtrlCAndSigtermCountEvenIfTheParentIgnoresThem) {
  for (const int ending : {SIGINT, SIGTERM}) {
    const Interrupted run = RunUntilItHangs([&](pid_t pid) { kill(pid, ending); },
                                            [] {
                                              for (const int each : {SIGINT, SIGTERM, SIGCHLD}) {
                                                signal(each, SIG_IGN);
                                              }
                                            });
    EXPECT_EQ(run.exit_code, 128 + ending);
    EXPECT_LT(run.after, kAtOnce);
  }
}

TEST(Standalone, HangUpIsIgnoredUnderNohup) {
  const Interrupted run = RunUntilItHangs(
      [](pid_t pid) {
        kill(pid, SIGHUP);
        kill(pid, SIGTERM);
      },
      [] { signal(SIGHUP, SIG_IGN); });
  EXPECT_EQ(run.exit_code, 128 + SIGTERM);
}

TEST(Standalone, CtrlCWhileRanksAreForkedEndsAll) {
  // Text that was printed before Main() is flushed at the first fork. The signal is sent at a
  // different time in each iteration.
  for (const int pause_ms : {0, 1, 3, 10, 30}) {
    const Ended ended =
        RunByHand({"--workers", "16", "--config", "mode=hangs"}, {{"GANG_PROGRAM_TALKS", "1"}},
                  [pause_ms](pid_t pid, const std::string& line) {
                    if (line != "before Main") return;
                    usleep(1000 * pause_ms);
                    kill(pid, SIGINT);
                  });
    EXPECT_EQ(ended.exit_code, 128 + SIGINT);
    EXPECT_THAT(ended.output, HasSubstr("after step 0"));
    EXPECT_LT(ended.took, kPatience) << "something holds its output";
  }
}

// The pipe ends when the last process that holds it has ended.
TEST(Standalone, LeavesNoProcessWhenKilled) {
  const Interrupted run = RunUntilItHangs([](pid_t pid) { kill(pid, SIGKILL); });
  EXPECT_EQ(run.exit_code, 128 + SIGKILL);
  EXPECT_LT(run.after, kAtOnce);
}

TEST(Standalone, RanksEndWithTheProcessThatForkedThem) {
  const Ended ended = RunByHand({"--workers", "2", "--config", "mode=hangs"}, {},
                                [](pid_t pid, const std::string& line) {
                                  if (line != "hanging") return;
                                  for (const pid_t each : AllProcesses()) {
                                    if (ReadProcess(each).parent == pid) kill(each, SIGKILL);
                                  }
                                });
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.output, HasSubstr("workers failed"));
  EXPECT_LT(ended.took, kPatience);
}

TEST(Standalone, ChildrenOfARankEndWithIt) {
  const Ended ended =
      RunByHand({"--workers", "2", "--max-step", "1"}, {{"GANG_PROGRAM_LEAVES", "1"}});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.output, HasSubstr("after step 1"));
  EXPECT_LT(ended.took, kPatience);
}

TEST(Gang, RunsGangsOfAnySizeInSequenceEvenAfterAFailure) {
  const Ended ended = RunByHand({}, {{"GANG_PROGRAM_FORM", "one_after_another"}});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.output, AllOf(HasSubstr("finished: 1\n"),
                                  HasSubstr("rank 2 of 3 failed: exit code 1: a crowd"),
                                  HasSubstr("finished: 2\n")));
}

TEST(Gang, FailsIfARankCannotBeRequested) {
  const Ended ended = RunByHand({}, {{"GANG_PROGRAM_FORM", "one_after_another"}});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("rank 0 of 1 failed: "), HasSubstr(std::strerror(EMSGSIZE))));
}

TEST(Standalone, AProgramStartedByARankRunsByHand) {
  const Ended ended = RunByHand({"--max-step", "2", "--config", "mode=nested"});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.output, AllOf(HasSubstr("after step 1"), HasSubstr("shell said 0"),
                                  HasSubstr("after step 2")));
}

TEST(Standalone, ResumesFromItsCheckpointUnderANewAttempt) {
  std::string folder = ::testing::TempDir() + "by-hand-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  EXPECT_EQ(RunByHand({"--max-step", "2", "--checkpoint-dir", folder}).exit_code, 0);
  const Ended again = RunByHand(
      {"--max-step", "4", "--checkpoint-dir", folder, "--resume", folder + "/step-2-attempt-1"});
  EXPECT_THAT(again.output, AllOf(HasSubstr("resumed: count 2"), HasSubstr("step-4-attempt-2"),
                                  HasSubstr("step 3 ")));
  std::filesystem::remove_all(folder);
}

TEST(Standalone, CountsStepsWhenResumingASweepWithTimeAttr) {
  const attune::testing::ScratchFolder folder;
  {
    FakeGang gang(1,
                  {{"time_attr", "thirds"}, {"milestone", 2}, {"checkpoint_dir", folder.path()}});
    gang.AwaitWaiting();
    gang.Verdict(2, "pause");
    EXPECT_EQ(gang.Wait(0), 0);
  }
  const Ended ended = RunByHand({"--max-step", "8", "--resume", folder / "step-2-attempt-2"});
  EXPECT_THAT(ended.output, AllOf(HasSubstr("resumed: count 6"), HasSubstr("step 7 "),
                                  HasSubstr("time 6 "), HasSubstr("after step 8")));
}

TEST(Standalone, TheNextRunRemovesIncompleteCheckpoints) {
  std::string folder = ::testing::TempDir() + "by-hand-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::filesystem::path unfinished = folder + "/.attempt-3-Ab12Cd";
  std::filesystem::create_directory(unfinished);
  const Ended ended = RunByHand({"--max-step", "1", "--checkpoint-dir", folder});
  EXPECT_THAT(ended.output, HasSubstr("step-1-attempt-4"));
  EXPECT_FALSE(std::filesystem::exists(unfinished));
  std::filesystem::remove_all(folder);
}

TEST(Standalone, ArgumentsAfterTwoDashesReachTheProgram) {
  EXPECT_THAT(RunByHand({"--max-step", "1", "--", "one", "two"}).output, HasSubstr("args 2"));
}

TEST(Standalone, WrongArgumentsExitWith2) {
  EXPECT_EQ(RunByHand({"--no-such-option"}).exit_code, 2);
}

}  // namespace
}  // namespace attune::inline sdk::trainable::testing
