// A training program run by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "tests/unit/trainable/process.h"

namespace attune::trainable::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Standalone, TrainsOnAllWorkersAndPrintsALineAReport) {
  const Ended ended = RunByHand({"--workers", "2", "--max-step", "3"});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.output, AllOf(HasSubstr("step 1  args 0  ranks 2  step 1"),
                                  HasSubstr("step 3 "), HasSubstr("finished after step 3")));
}

TEST(Standalone, ARankThatThrowsEndsAllAndIsNamed) {
  const Ended ended = RunByHand({"--workers", "3", "--config", "mode=throws"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.output, HasSubstr("rank 1 failed: exit code 1: the loss became a teapot"));
}

TEST(Standalone, ARankThatIsKilledEndsAllAndIsNamed) {
  const Ended ended = RunByHand({"--workers", "2", "--config", "mode=killed"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.output, HasSubstr("rank 1 failed: killed by signal 9 (Killed)"));
}

TEST(Standalone, AFailureInSetupIsNamed) {
  const Ended ended = RunByHand({"--config", "mode=setup_fails"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.output, HasSubstr("rank 0 failed: exit code 1: no such dataset: /data/none"));
}

TEST(Standalone, AnInitialisationHookRunsOnEveryRankBeforeSetup) {
  const Ended ended =
      RunByHand({"--workers", "2", "--config", "mode=hook", "--max-step", "1", "--", "one"});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("hook of rank 0 of 2, local 0 of 2, on cpu, seed 0, args 1"),
                    HasSubstr("hook of rank 1 of 2"), HasSubstr("threads: 3")));
}

TEST(Standalone, TheHookThatTheDocsShowRuns) {
  const Ended ended =
      RunByHand({"--workers", "2", "--max-step", "1"}, {{"GANG_PROGRAM_FORM", "hooked"}});
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
}

TEST(Standalone, AnInitialisationHookThatThrowsIsNamed) {
  const Ended ended = RunByHand({"--workers", "2", "--config", "mode=hook_fails"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.output,
              HasSubstr("rank 1 failed: exit code 1: no such network interface: eth7"));
}

TEST(Standalone, ARankWhoseChildHoldsItsChannelIsNotWaitedFor) {
  const Ended ended = RunByHand({"--config", "mode=forks"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.output, HasSubstr("rank 0 failed: exit code 1: after a fork"));
  EXPECT_LT(ended.took, std::chrono::seconds(15)) << "until the child has ended";
}

TEST(Standalone, CtrlCEndsAll) {
  const Ended ended = RunByHand({"--workers", "2", "--config", "mode=hangs"}, {},
                                [](pid_t pid, const std::string& line) {
                                  if (line == "hanging") kill(pid, SIGINT);
                                });
  EXPECT_EQ(ended.exit_code, 130);
  EXPECT_THAT(ended.output, HasSubstr("interrupted"));
}

TEST(Standalone, WorkersDieWithTheirParent) {
  // The pipe's end comes when the last process holding it has gone.
  const Ended ended = RunByHand({"--workers", "2", "--config", "mode=hangs"}, {},
                                [](pid_t pid, const std::string& line) {
                                  if (line == "hanging") kill(pid, SIGKILL);
                                });
  EXPECT_EQ(ended.exit_code, 128 + SIGKILL);
  EXPECT_LT(ended.took, kPatience);
}

TEST(Standalone, ResumesFromItsCheckpointUnderANewAttempt) {
  std::string folder = ::testing::TempDir() + "by-hand-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  EXPECT_EQ(RunByHand({"--max-step", "2", "--checkpoint-dir", folder}).exit_code, 0);
  const Ended again = RunByHand(
      {"--max-step", "4", "--checkpoint-dir", folder, "--resume", folder + "/step-2-attempt-1"});
  EXPECT_THAT(again.output, AllOf(HasSubstr("resumed with count 2"), HasSubstr("step-4-attempt-2"),
                                  HasSubstr("step 3 ")));
  std::filesystem::remove_all(folder);
}

TEST(Standalone, ArgumentsAfterTwoDashesReachTheProgram) {
  EXPECT_THAT(RunByHand({"--max-step", "1", "--", "one", "two"}).output, HasSubstr("args 2"));
}

TEST(Standalone, WrongArgumentsExitWith2) {
  EXPECT_EQ(RunByHand({"--no-such-option"}).exit_code, 2);
}

}  // namespace
}  // namespace attune::trainable::testing
