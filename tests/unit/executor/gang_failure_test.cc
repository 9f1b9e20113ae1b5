#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "tests/unit/executor/harness.h"

namespace attune::gang {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class GangFailure : public GangFixture {};

TEST_F(GangFailure, ExitCodeBeforeTheFirstReportNamesRankCodeAndLastLines) {
  const Failure failure = RunToFailure(Script("echo cannot find data; exit 3"));
  EXPECT_EQ(failure.kind, FailureKind::kExit);
  EXPECT_EQ(failure.rank, 0);
  EXPECT_EQ(failure.exit_code, 3);
  EXPECT_THAT(failure.message, AllOf(StartsWith("rank 0 "), EndsWith(" 3")));
  EXPECT_EQ(failure.log_tail, "cannot find data\n");
}

TEST_F(GangFailure, FindsALogPatternInTheLogOfAnyRank) {
  ASSERT_EQ(mkfifo((dir_.path() / "told.pipe").c_str(), 0600), 0);
  GangSpec spec = Spec({"/bin/sh", "-c",
                        "[ $ATTUNE_RANK = 0 ] && { read told < told.pipe; exit 1; }\n"
                        "echo an ECC error; echo > told.pipe; read more <&3"},
                       2);
  spec.program.log_patterns = {"NCCL", "ECC"};
  const Failure failure = RunToFailure(spec);
  EXPECT_EQ(failure.rank, 0);
  EXPECT_EQ(failure.match.pattern, "ECC");
  EXPECT_EQ(failure.match.line, "an ECC error");
}

TEST_F(GangFailure, StartsNothingIfASecretIsMissing) {
  GangSpec spec = Script("touch started");
  spec.program.missing_secrets = {"HF_TOKEN"};
  const Failure failure = RunToFailure(spec);
  EXPECT_EQ(failure.kind, FailureKind::kHost);
  EXPECT_THAT(failure.message, HasSubstr("attune secret set HF_TOKEN"));
  EXPECT_FALSE(std::filesystem::exists(dir_.path() / "started"));
}

TEST_F(GangFailure, NamesTheSignal) {
  const Failure failure = RunToFailure(PlainWorker({"1/kill:6", "hang"}, 2));
  EXPECT_EQ(failure.kind, FailureKind::kSignal);
  EXPECT_EQ(failure.rank, 1);
  EXPECT_EQ(failure.signal, SIGABRT);
  EXPECT_THAT(failure.message, HasSubstr("SIGABRT"));
}

TEST_F(GangFailure, DistinguishesAKillFromOutside) {
  const Failure failure = RunToFailure(PlainWorker({"1/kill:9", "hang"}, 2));
  EXPECT_EQ(failure.rank, 1);
  EXPECT_EQ(failure.signal, SIGKILL);
  EXPECT_THAT(failure.message, HasSubstr("SIGKILL"));
}

TEST_F(GangFailure, ExceptionTextBecomesTheMessage) {
  const Failure failure =
      RunToFailure(PlainWorker({"1/error:loss is NaN at step 7", "1/exit:1", "hang"}, 2));
  EXPECT_EQ(failure.kind, FailureKind::kExit);
  EXPECT_EQ(failure.rank, 1);
  EXPECT_EQ(failure.exit_code, 1);
  EXPECT_EQ(failure.message, "rank 1: loss is NaN at step 7");
}

TEST_F(GangFailure, AFullDiskIsTheHostsFailureAndDiscardsTheCheckpoint) {
  std::mutex mutex;
  std::vector<std::filesystem::path> discarded;
  StartSupervisor({.discard = [&](std::filesystem::path folder) {
    const std::lock_guard lock(mutex);
    discarded.push_back(std::move(folder));
  }});
  const GangSpec spec = PlainWorker({"1/full:no space left", "1/exit:1", "hang"}, 2);
  const std::filesystem::path unfinished = spec.checkpoint_dir / ".attempt-1-Ab3";
  std::filesystem::create_directories(unfinished);
  WriteFile(unfinished / "model", "12345");
  std::filesystem::create_directories(spec.checkpoint_dir / ".attempt-1-resumed-2");
  std::filesystem::create_directories(spec.checkpoint_dir / ".attempt-12-Xy9");
  std::filesystem::create_directories(spec.checkpoint_dir / "step-1-attempt-1");
  const Failure failure = RunToFailure(spec);
  EXPECT_EQ(failure.kind, FailureKind::kHost);
  EXPECT_TRUE(failure.disk_full);
  EXPECT_GT(failure.room_bytes, 5u);
  EXPECT_EQ(failure.message, "rank 1: no space left");
  const std::lock_guard lock(mutex);
  EXPECT_THAT(discarded, ElementsAre(unfinished));
}

TEST_F(GangFailure, AFullDiskForALauncherIsTheHostsFailure) {
  const std::filesystem::path launchers = folders_.Launchers();
  std::filesystem::create_directories(launchers);
  if (mount("tmpfs", launchers.c_str(), "tmpfs", 0, "nr_inodes=1") != 0)
    GTEST_SKIP() << "may not mount a small disk";
  const Failure failure = RunToFailure(Spec({ATTUNE_TEST_LAUNCHABLE_WORKER, "exit:0"}));
  EXPECT_EQ(failure.kind, FailureKind::kHost);
  EXPECT_TRUE(failure.disk_full);
  EXPECT_THAT(failure.message, HasSubstr(std::strerror(ENOSPC)));
  umount2(launchers.c_str(), MNT_DETACH);
}

TEST_F(GangFailure, AnErrorFollowedByExitZeroFails) {
  const Failure failure = RunToFailure(PlainWorker({"error:oops", "exit:0"}));
  EXPECT_EQ(failure.message, "rank 0: oops");
}

TEST_F(GangFailure, TearsDownARankThatStaysAfterItsError) {
  const Failure failure = RunToFailure(PlainWorker({"0/error:stuck in a destructor", "hang"}, 2));
  EXPECT_EQ(failure.rank, 0);
  EXPECT_EQ(failure.exit_code, -1);
  EXPECT_EQ(failure.message, "rank 0: stuck in a destructor");
}

TEST_F(GangFailure, DoesNotBlameTheVictimOfALostPeer) {
  // Rank 0 is the first to report an error, but rank 1, its lost peer, is the cause.
  GangSpec spec =
      Spec({"/bin/sh", "-c",
            "read start <&3\n"
            "if [ $ATTUNE_RANK = 0 ]; then\n"
            "  echo '{\"type\":\"error\",\"message\":\"it is gone\",\"lost_peer\":true}' >&3\n"
            "  echo told > told.pipe; exit 1\n"
            "fi\n"
            "read told < told.pipe; kill -SEGV $$"},
           2);
  ASSERT_EQ(mkfifo((dir_.path() / "told.pipe").c_str(), 0600), 0);
  StartSupervisor({.timing = {.victim_grace = std::chrono::seconds(10)}});
  const Failure failure = RunToFailure(spec);
  EXPECT_EQ(failure.rank, 1);
  EXPECT_EQ(failure.signal, SIGSEGV);
}

TEST_F(GangFailure, WaitsForTheCauseAfterTheErrorOfAVictim) {
  // The grace after a cause is zero, and the grace after a victim is long.
  StartSupervisor({.timing = {.failure_grace = std::chrono::seconds(0),
                              .victim_grace = std::chrono::seconds(10)}});
  GangSpec spec =
      Spec({"/bin/sh", "-c",
            "read start <&3\n"
            "if [ $ATTUNE_RANK = 0 ]; then\n"
            "  echo '{\"type\":\"error\",\"message\":\"it is gone\",\"lost_peer\":true}' >&3\n"
            "  echo told > told.pipe\n"
            "else\n"
            "  read told < told.pipe\n"
            "  echo '{\"type\":\"error\",\"message\":\"out of ideas\"}' >&3\n"
            "fi\n"
            "read stay <&3"},
           2);
  ASSERT_EQ(mkfifo((dir_.path() / "told.pipe").c_str(), 0600), 0);
  const Failure failure = RunToFailure(spec);
  EXPECT_EQ(failure.rank, 1);
  EXPECT_EQ(failure.message, "rank 1: out of ideas");
}

TEST_F(GangFailure, DoesNotWaitForACauseWhenAllRanksHaveExited) {
  StartSupervisor({.timing = {.victim_grace = std::chrono::hours(1)}});
  const GangSpec spec =
      Spec({"/bin/sh", "-c",
            "read start <&3\n"
            "[ $ATTUNE_RANK = 1 ] && exit 0\n"
            "echo '{\"type\":\"error\",\"message\":\"it is gone\",\"lost_peer\":true}' >&3\n"
            "exit 1"},
           2);
  EXPECT_THAT(RunToFailure(spec).message, HasSubstr("rank 0: it is gone"));
}

TEST_F(GangFailure, WaitsForARankThatAnnouncesItsExitAndNamesIt) {
  // Rank 1 runs until the test has seen the end of its victim.
  ASSERT_EQ(mkfifo((dir_.path() / "go.pipe").c_str(), 0600), 0);
  StartSupervisor({.timing = {.victim_grace = std::chrono::milliseconds(0)}});
  const GangSpec spec =
      Spec({"/bin/sh", "-c",
            "read start <&3\n"
            "if [ $ATTUNE_RANK = 1 ]; then\n"
            "  echo '{\"type\":\"leaving\",\"message\":\"bad config\"}' >&3\n"
            "  echo > go.pipe; read line < go.pipe; exit 1\n"
            "fi\n"
            "read line < go.pipe\n"
            "echo '{\"type\":\"error\",\"message\":\"it is gone\",\"lost_peer\":true}' >&3\n"
            "exit 1"},
           2);
  supervisor_->Run(spec);
  const std::vector<pid_t> pids = Pids(spec);
  ASSERT_EQ(pids.size(), 2u);
  while (kill(pids[0], 0) == 0) std::this_thread::yield();
  WriteFile(dir_.path() / "go.pipe", "go\n");
  const Failure failure = WaitForEnded(spec).failure.value_or(Failure{});
  EXPECT_EQ(failure.rank, 1);
  EXPECT_EQ(failure.message, "rank 1: bad config");
}

TEST_F(GangFailure, NamesARankThatExitedWithZeroBeforeItsVictims) {
  const Failure failure = RunToFailure(
      PlainWorker({"1/leaving:a warning", "1/exit:0", "lost:it is gone", "exit:1"}, 2));
  EXPECT_EQ(failure.rank, 1);
  EXPECT_THAT(failure.message, AllOf(StartsWith("rank 1 "), HasSubstr("rank 0: it is gone")));
}

TEST_F(GangFailure, WaitsForTheExecutorsSignalWhenAJobIsEnded) {
  StartSupervisor({.timing = {.leave_grace = std::chrono::hours(1)}});
  const GangSpec spec = Spec({"/bin/sh", "-c", "read start <&3; kill -TERM $$"});
  supervisor_->Run(spec);
  const std::vector<pid_t> pids = Pids(spec);
  ASSERT_EQ(pids.size(), 1u);
  while (kill(pids[0], 0) == 0) std::this_thread::yield();
  supervisor_->Cancel(spec.attempt, CancelReason::kLeaving);
  EXPECT_EQ(WaitForEnded(spec).failure->kind, FailureKind::kLease);
}

TEST_F(GangFailure, ASignalIsNoFailureIfTheExecutorLeavesSoon) {
  const GangSpec spec = Spec({"/bin/sh", "-c", "read start <&3; read more <&3"});
  supervisor_->Run(spec);
  const std::vector<pid_t> pids = Pids(spec);
  ASSERT_EQ(pids.size(), 1u);
  supervisor_->Cancel(spec.attempt, CancelReason::kLeavingSoon);
  kill(pids[0], SIGTERM);
  EXPECT_EQ(WaitForEnded(spec).failure->kind, FailureKind::kLease);
}

TEST_F(GangFailure, WholeGangIsGoneWithinASecond) {
  const GangSpec spec = PlainWorker({"grandchild", "1/report-nothing", "1/exit:1", "hang"}, 4);
  supervisor_->Run(spec);
  ASSERT_TRUE(facts_.Wait<Started>(spec.attempt));
  const auto started = std::chrono::steady_clock::now();
  EXPECT_EQ(WaitForEnded(spec).failure->rank, 1);
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(1));
  for (const pid_t pid : Pids(spec)) EXPECT_NE(kill(pid, 0), 0);
  EXPECT_NE(kill(NumberAfter(Log(spec, 1), "grandchild"), 0), 0);
}

TEST_F(GangFailure, DiscardsFetchedCheckpointsWithTheGang) {
  std::vector<std::filesystem::path> discarded;
  StartSupervisor(
      {.discard = [&](std::filesystem::path folder) { discarded.push_back(std::move(folder)); }});
  GangSpec spec = PlainWorker({"hang"}, 1);
  spec.world_size = 2;
  spec.ranks[0].rank = 1;
  spec.host = {"127.0.0.1", "lo"};
  spec.rendezvous = SharedRendezvous{"127.0.0.2", 4000, std::nullopt};
  spec.resume = channel::Resume{.step = 1, .path = dir_.path() / "elsewhere"};
  const std::string attempt = std::to_string(spec.attempt.attempt);
  const auto mine = spec.checkpoint_dir / (".attempt-" + attempt + "-resumed-1");
  supervisor_->Run(spec);
  ASSERT_TRUE(facts_.Wait<Started>(spec.attempt));
  supervisor_->Cancel(spec.attempt, CancelReason::kUnwanted);
  WaitForEnded(spec);
  EXPECT_THAT(discarded, ElementsAre(mine));
}

TEST_F(GangFailure, NamesThePathOfAMissingProgram) {
  const GangSpec spec = Spec({"./mnist"});
  const Failure failure = RunToFailure(spec);
  EXPECT_EQ(failure.kind, FailureKind::kStart);
  EXPECT_EQ(failure.rank, -1);
  EXPECT_THAT(failure.message,
              AllOf(HasSubstr("'./mnist'"), HasSubstr((dir_.path() / "mnist").string())));
  EXPECT_EQ(facts_.Count<Started>(spec.attempt), 0);
}

TEST_F(GangFailure, SuggestsChmodForAProgramWithoutPermission) {
  WriteFile(dir_.path() / "train", "#!/bin/sh\n");
  const Failure failure = RunToFailure(Spec({"./train"}));
  EXPECT_EQ(failure.kind, FailureKind::kStart);
  EXPECT_THAT(failure.message, HasSubstr("chmod +x"));
}

TEST_F(GangFailure, NamesAMissingInterpreterLine) {
  WriteFile(dir_.path() / "train", "echo hello\n", /*executable=*/true);
  const Failure failure = RunToFailure(Spec({"./train"}));
  EXPECT_EQ(failure.kind, FailureKind::kStart);
  EXPECT_THAT(failure.message, HasSubstr("#!"));
}

TEST_F(GangFailure, NamesAMissingWorkingDirectory) {
  GangSpec spec = Script("true");
  spec.program.working_directory = "/nowhere/at/all";
  EXPECT_THAT(RunToFailure(spec).message, HasSubstr("/nowhere/at/all"));
}

TEST_F(GangFailure, AnUnknownPlaceholderCannotStart) {
  const Failure failure = RunToFailure(Spec({"/bin/echo", "${rank}"}));
  EXPECT_EQ(failure.kind, FailureKind::kStart);
  EXPECT_THAT(failure.message, StartsWith("${rank} "));
}

TEST_F(GangFailure, QuotesAMalformedLine) {
  const Failure failure = RunToFailure(PlainWorker({"1/raw:loss = 0.3", "hang"}, 2));
  EXPECT_EQ(failure.kind, FailureKind::kProtocol);
  EXPECT_EQ(failure.rank, 1);
  EXPECT_THAT(failure.message, AllOf(StartsWith("rank 1 "), EndsWith("'loss = 0.3'")));
}

TEST_F(GangFailure, BlamesTheRankForAnInvalidValue) {
  const Failure failure = RunToFailure(
      PlainWorker({R"(raw:{"type":"report","step":1,"metrics":{},"seconds":"nan"})", "hang"}));
  EXPECT_EQ(failure.kind, FailureKind::kProtocol);
  EXPECT_EQ(failure.rank, 0);
  EXPECT_THAT(failure.message, AllOf(StartsWith("rank 0 "), HasSubstr("'seconds'"),
                                     HasSubstr("'\"nan\"'"), HasSubstr("'{\"type\"")));
}

TEST_F(GangFailure, QuotesATooLongLine) {
  const Failure failure = RunToFailure(PlainWorker({"flood:1100000", "hang"}));
  EXPECT_EQ(failure.kind, FailureKind::kProtocol);
  EXPECT_THAT(failure.message, AllOf(HasSubstr("1048576"), HasSubstr("'xxx")));
}

TEST_F(GangFailure, RefusesALogFromAnotherRank) {
  const Failure failure = RunToFailure(PlainWorker({"1/log:1", "hang"}, 2));
  EXPECT_EQ(failure.kind, FailureKind::kProtocol);
  EXPECT_EQ(failure.rank, 1);
}

TEST_F(GangFailure, RefusesAReportFromAnotherRank) {
  const Failure failure = RunToFailure(PlainWorker({"1/report:1", "hang"}, 2));
  EXPECT_EQ(failure.kind, FailureKind::kProtocol);
  EXPECT_EQ(failure.rank, 1);
}

TEST_F(GangFailure, StepsMustIncrease) {
  const Failure failure = RunToFailure(PlainWorker({"report:2", "report:2", "hang"}));
  EXPECT_EQ(failure.kind, FailureKind::kProtocol);
  EXPECT_THAT(failure.message, HasSubstr("step 2 after step 2"));
}

TEST_F(GangFailure, RefusesACheckpointOutsideItsFolder) {
  const Failure failure = RunToFailure(PlainWorker({"checkpoint:/etc/step-1-attempt-1", "hang"}));
  EXPECT_EQ(failure.kind, FailureKind::kProtocol);
  EXPECT_THAT(failure.message, HasSubstr("/etc/step-1-attempt-1"));
}

TEST_F(GangFailure, LogTailIsBoundedAndBeginsWithAWholeLine) {
  const Failure failure = RunToFailure(
      Script("i=0; while [ $i -lt 500 ]; do echo line number $i; i=$((i+1)); done; exit 1"));
  EXPECT_LE(failure.log_tail.size(), kLogTailBytesMax);
  EXPECT_THAT(failure.log_tail, AllOf(StartsWith("line number "), EndsWith("line number 499\n")));
}

TEST_F(GangFailure, RefusesARankZeroThatOtherHostsCannotReach) {
  GangSpec spec = PlainWorker({"rendezvous:4321", "hang"});
  spec.world_size = 2;
  spec.host = {"10.0.0.3", "eth0"};
  const Failure failure = RunToFailure(spec);
  EXPECT_EQ(failure.kind, FailureKind::kProtocol);
  EXPECT_THAT(failure.message, HasSubstr("127.0.0.1"));
  EXPECT_THAT(failure.message, HasSubstr("10.0.0.3"));
}

TEST_F(GangFailure, RefusesAGangOnSeveralHostsWithoutAnAddress) {
  GangSpec spec = PlainWorker({"hang"});
  spec.world_size = 2;
  const Failure failure = RunToFailure(spec);
  EXPECT_EQ(failure.kind, FailureKind::kStart);
  EXPECT_THAT(failure.message, HasSubstr("--interface"));
}

TEST_F(GangFailure, ReportsALostPeerOnAnotherHost) {
  GangSpec spec = PlainWorker({"lost:the gang is gone", "exit:1"});
  spec.world_size = 2;
  spec.host = {"127.0.0.2", "lo"};
  EXPECT_TRUE(RunToFailure(spec).lost_peer);
  EXPECT_FALSE(RunToFailure(PlainWorker({"exit:1"})).lost_peer);
}

}  // namespace
}  // namespace attune::gang
