#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "system/processes.h"
#include "tests/unit/executor/harness.h"

namespace attune::gang {
namespace {

using std::chrono::milliseconds;

// Longer than any test, so a process that ends within it was not killed.
constexpr std::chrono::hours kLong{1};

// Tests of gangs whose processes may exit by themselves. `trap:FILE` of the worker makes that file
// when it gets SIGTERM.
class GangGrace : public GangFixture {
 protected:
  // Runs a gang until its first step, which must be its last command.
  GangSpec Start(GangSpec spec, milliseconds grace) {
    spec.grace = grace;
    supervisor_->Run(spec);
    EXPECT_TRUE(facts_.Wait<FirstStep>(spec.attempt));
    return spec;
  }

  Ended Cancel(const GangSpec& spec, CancelReason reason = CancelReason::kUnwanted) {
    supervisor_->Cancel(spec.attempt, reason);
    return WaitForEnded(spec);
  }

  bool HasFile(const std::string& file) const {
    return std::filesystem::exists(dir_.path() / file);
  }

  // A FIFO for `trap`; its writer waits for AwaitFifo().
  std::string MakeFifo(const std::string& name) {
    EXPECT_EQ(mkfifo((dir_.path() / name).c_str(), 0600), 0);
    return name;
  }
  void AwaitFifo(const std::string& fifo) { ReadFile(dir_.path() / fifo); }
};

TEST_F(GangGrace, RanksGetSigtermAndExitThemselves) {
  const GangSpec spec =
      Start(PlainWorker({"0/trap:saved-0", "1/trap:saved-1", "progress:0", "hang"}, 2), kLong);
  EXPECT_EQ(Cancel(spec).outcome, Outcome::kCancelled);
  EXPECT_TRUE(HasFile("saved-0"));
  EXPECT_TRUE(HasFile("saved-1"));
}

TEST_F(GangGrace, RankZeroGetsSigtermIfItRunsAfterDone) {
  StartSupervisor({.timing = {.follow_timeout = milliseconds(20)}});
  GangSpec spec = PlainWorker({"trap:saved", "ask:1", "read", "done", "hang"}, 1);
  spec.grace = kLong;
  supervisor_->Run(spec);
  ASSERT_TRUE(facts_.Wait<Report>(spec.attempt));
  supervisor_->SetVerdict(spec.attempt, {.step = 1, .action = Action::kStop});
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kFinished);
  EXPECT_TRUE(HasFile("saved"));
}

TEST_F(GangGrace, RanksOfALauncherGetSigterm) {
  const std::filesystem::path program = dir_.path() / "worker";
  std::filesystem::copy_file(ATTUNE_TEST_LAUNCHABLE_WORKER, program);
  const std::string fifo = MakeFifo("heir");
  const GangSpec spec = Start(
      Spec({program, "parent", "0/trap:saved", "1/heir:heir", "progress:0", "hang"}, 2), kLong);
  ASSERT_NE(NumberAfter(Log(spec), "parent"), getpid());
  supervisor_->Cancel(spec.attempt, CancelReason::kUnwanted);
  AwaitFifo(fifo);
  WaitForEnded(spec);
  EXPECT_TRUE(HasFile("saved"));
}

TEST_F(GangGrace, AGangThatEndsWithItsExecutorHasAGrace) {
  const GangSpec spec = Start(PlainWorker({"trap:saved", "progress:0", "hang"}), kLong);
  EXPECT_EQ(Cancel(spec, CancelReason::kLeaving).failure->kind, FailureKind::kLease);
  EXPECT_TRUE(HasFile("saved"));
}

TEST_F(GangGrace, ReportsDuringTheGraceCount) {
  GangSpec spec =
      Spec({"/bin/bash", "-c",
            "trap 'echo \"{\\\"type\\\":\\\"report\\\",\\\"step\\\":7,\\\"seconds\\\":1,"
            "\\\"metrics\\\":{},\\\"waits\\\":false}\" >&3; exit' TERM\n"
            "echo '{\"type\":\"progress\",\"step\":0}' >&3\n"
            "read start <&3; read more <&3"});
  spec = Start(std::move(spec), kLong);
  Cancel(spec);
  EXPECT_EQ(facts_.Wait<Report>(spec.attempt).value_or(Report{}).step, 7);
}

TEST_F(GangGrace, KillsAllAtItsEnd) {
  const GangSpec spec =
      Start(PlainWorker({"deaf", "grandchild", "progress:0", "hang"}, 2), milliseconds(50));
  const auto asked = std::chrono::steady_clock::now();
  EXPECT_EQ(Cancel(spec).outcome, Outcome::kCancelled);
  EXPECT_GE(std::chrono::steady_clock::now() - asked, milliseconds(50));
  EXPECT_NE(kill(NumberAfter(Log(spec), "grandchild"), 0), 0);
}

TEST_F(GangGrace, AGraceOfZeroKillsAtOnce) {
  const GangSpec spec = Start(PlainWorker({"trap:saved", "progress:0", "hang"}), milliseconds(0));
  EXPECT_EQ(Cancel(spec).outcome, Outcome::kCancelled);
  EXPECT_FALSE(HasFile("saved"));
}

TEST_F(GangGrace, DescendantsGetSigtermOnlyAfterTheirRankHasExited) {
  const std::string near = MakeFifo("near");
  const std::string far = MakeFifo("far");
  const std::string other = MakeFifo("other");
  const GangSpec spec = Start(
      PlainWorker({"0/heir:near", "0/far-heir:far", "1/heir:other", "1/deaf", "progress:0", "hang"},
                  2),
      kLong);
  const UniqueFd others_heir = OpenPidfd(NumberAfter(Log(spec, 1), "heir"));
  supervisor_->Cancel(spec.attempt, CancelReason::kUnwanted);
  AwaitFifo(near);
  AwaitFifo(far);
  pollfd ended{others_heir.get(), POLLIN, 0};
  EXPECT_EQ(poll(&ended, 1, 0), 0);
  EXPECT_EQ(facts_.Count<Ended>(spec.attempt), 0);
  kill(Pids(spec)[1], SIGKILL);
  AwaitFifo(other);
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kCancelled);
}

TEST_F(GangGrace, AnOrphanGetsSigtermOnlyAfterItsRankHasExited) {
  const std::string near = MakeFifo("near");
  const GangSpec spec = Start(
      PlainWorker({"0/heir:near", "1/orphan-heir:told", "1/deaf", "progress:0", "hang"}, 2), kLong);
  const UniqueFd orphan = OpenPidfd(NumberAfter(Log(spec, 1), "heir"));
  supervisor_->Cancel(spec.attempt, CancelReason::kUnwanted);
  AwaitFifo(near);
  pollfd ended{orphan.get(), POLLIN, 0};
  EXPECT_EQ(poll(&ended, 1, 0), 0);
  EXPECT_FALSE(HasFile("told"));
  kill(Pids(spec)[1], SIGKILL);
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kCancelled);
  EXPECT_TRUE(HasFile("told"));
}

TEST_F(GangGrace, AGangEndsWhenItsLastProcessHasExited) {
  const GangSpec spec = Start(PlainWorker({"deaf", "grandchild", "progress:0", "hang"}), kLong);
  const pid_t rank = Pids(spec)[0];
  const pid_t grandchild = NumberAfter(Log(spec), "grandchild");
  const UniqueFd left = OpenPidfd(rank);
  supervisor_->Cancel(spec.attempt, CancelReason::kUnwanted);
  kill(rank, SIGKILL);
  ASSERT_TRUE(WaitForEnd(left.get()));
  EXPECT_EQ(facts_.Count<Ended>(spec.attempt), 0);
  EXPECT_EQ(kill(grandchild, SIGKILL), 0);
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kCancelled);
}

TEST_F(GangGrace, EndsWithTheLease) {
  const GangSpec spec = Start(PlainWorker({"deaf", "progress:0", "hang"}), kLong);
  supervisor_->Cancel(spec.attempt, CancelReason::kUnwanted);
  EXPECT_EQ(Cancel(spec, CancelReason::kLeaseLost).outcome, Outcome::kCancelled);
}

TEST_F(GangGrace, ALostLeaseAllowsNoGrace) {
  const GangSpec spec = Start(PlainWorker({"trap:saved", "progress:0", "hang"}), kLong);
  EXPECT_EQ(Cancel(spec, CancelReason::kLeaseLost).failure->kind, FailureKind::kLease);
  EXPECT_FALSE(HasFile("saved"));
}

TEST_F(GangGrace, OtherRanksOfAFailedGangGetNoGrace) {
  const GangSpec spec = Start(PlainWorker({"1/trap:saved", "progress:0", "hang"}, 2), kLong);
  kill(Pids(spec)[0], SIGSEGV);
  EXPECT_EQ(WaitForEnded(spec).failure->rank, 0);
  EXPECT_FALSE(HasFile("saved"));
}

TEST_F(GangGrace, AGangThatFailedOnAnotherHostGetsNoGrace) {
  const GangSpec spec = Start(PlainWorker({"trap:saved", "progress:0", "hang"}), kLong);
  EXPECT_EQ(Cancel(spec, CancelReason::kFailedElsewhere).outcome, Outcome::kCancelled);
  EXPECT_FALSE(HasFile("saved"));
}

TEST_F(GangGrace, RanksGetNoSecondSigtermAfterASignalOfABatchSystem) {
  const GangSpec spec =
      Start(PlainWorker({"0/trap:saved", "progress:0", "hang"}, 2), milliseconds(20));
  supervisor_->Cancel(spec.attempt, CancelReason::kLeavingSoon);
  kill(Pids(spec)[1], SIGTERM);
  EXPECT_EQ(WaitForEnded(spec).failure->kind, FailureKind::kLease);
  EXPECT_FALSE(HasFile("saved"));
}

}  // namespace
}  // namespace attune::gang
