#include <chrono>

#include "tests/unit/executor/harness.h"

namespace attune::gang {
namespace {

using testing::HasSubstr;

class GangWatch : public GangFixture {
 protected:
  // A stall timeout that ranks keep even on a busy host, as long as they send messages.
  static constexpr std::chrono::milliseconds kStallTimeout{500};

  // Expects that the gang still runs when a gang that started later has stalled.
  void ExpectNoStall(const GangSpec& spec) {
    GangSpec later = PlainWorker({"progress:1", "hang"});
    later.stall_timeout = spec.stall_timeout;
    EXPECT_EQ(RunToFailure(later).kind, FailureKind::kStall);
    EXPECT_EQ(facts_.Count<Ended>(spec.attempt), 0);
  }
};

TEST_F(GangWatch, NamesARankWithoutProgress) {
  GangSpec spec = PlainWorker({"progress:0", "1/hang", "0/raw:", "0/hang"}, 2);
  spec.program.command = {ATTUNE_TEST_PLAIN_WORKER, "progress:0", "1/hang", "report:1", "hang"};
  spec.milestone = 1;  // rank 0 waits for a verdict, so rank 1 may be silent
  spec.stall_timeout = std::chrono::milliseconds(150);
  supervisor_->Run(spec);
  ASSERT_TRUE(facts_.Wait<Report>(spec.attempt));
  supervisor_->SetVerdict(spec.attempt, {.step = 1, .action = Action::kContinue, .milestone = 9});
  const Ended ended = WaitForEnded(spec);
  EXPECT_EQ(ended.failure->kind, FailureKind::kStall);
  EXPECT_EQ(ended.failure->rank, 0);
  EXPECT_THAT(ended.failure->message, HasSubstr("150 ms (stall_timeout)"));
}

TEST_F(GangWatch, NoRankStallsWhileAVerdictIsPending) {
  GangSpec spec = PlainWorker({"0/report:1", "0/verdict", "hang"}, 2);
  spec.milestone = 1;
  spec.stall_timeout = kStallTimeout;
  supervisor_->Run(spec);
  ASSERT_TRUE(facts_.Wait<Report>(spec.attempt));
  ExpectNoStall(spec);
}

TEST_F(GangWatch, ARankAheadOfASilentRankIsExcused) {
  // Rank 0 saves at step 2, and rank 1 waits for its verdict.
  GangSpec spec = PlainWorker({"progress:1", "1/progress:2", "0/heartbeat:600000", "hang"}, 2);
  spec.stall_timeout = kStallTimeout;
  supervisor_->Run(spec);
  ASSERT_TRUE(facts_.Wait<FirstStep>(spec.attempt));
  ExpectNoStall(spec);
}

TEST_F(GangWatch, ASilentRankExcusesOnlyRanksAheadOfIt) {
  GangSpec spec = PlainWorker({"progress:1", "0/heartbeat:600000", "hang"}, 2);
  spec.stall_timeout = kStallTimeout;
  const Failure failure = RunToFailure(spec);
  EXPECT_EQ(failure.kind, FailureKind::kStall);
  EXPECT_EQ(failure.rank, 1);
}

TEST_F(GangWatch, DoesNotBlameARankThatWaitsForAnother) {
  GangSpec spec = PlainWorker({"progress:1", "0/waiting:1", "hang"}, 2);
  spec.stall_timeout = kStallTimeout;
  const Failure failure = RunToFailure(spec);
  EXPECT_EQ(failure.kind, FailureKind::kStall);
  EXPECT_EQ(failure.rank, 1);
}

TEST_F(GangWatch, RanksThatWaitForOneAnotherStall) {
  GangSpec spec = PlainWorker({"progress:1", "0/waiting:1", "1/waiting:0", "hang"}, 2);
  spec.stall_timeout = std::chrono::milliseconds(50);
  EXPECT_EQ(RunToFailure(spec).kind, FailureKind::kStall);
}

TEST_F(GangWatch, ARankThatNeverReportsDoesNotStallWhileRankZeroProgresses) {
  GangSpec spec = PlainWorker({"0/progress:1", "0/heartbeat:600000", "1/heartbeat:0", "hang"}, 2);
  spec.stall_timeout = kStallTimeout;
  supervisor_->Run(spec);
  ASSERT_TRUE(facts_.Wait<Started>(spec.attempt));
  ExpectNoStall(spec);
}

TEST_F(GangWatch, BlamesAnAwaitedRankThatExits) {
  const Failure failure =
      RunToFailure(PlainWorker({"0/rendezvous:1", "0/waiting:1", "0/hang", "1/read"}, 2));
  EXPECT_EQ(failure.kind, FailureKind::kExit);
  EXPECT_EQ(failure.rank, 1);
  EXPECT_THAT(failure.message, HasSubstr("at step 2"));
}

TEST_F(GangWatch, ARankThatWaitsForAFinishedRankZeroGetsTheVerdict) {
  // Rank 0 has finished step 2 and exits; rank 1 still waits for its verdict on step 2.
  const GangSpec spec = PlainWorker({"0/progress:2", "1/waiting:0", "1/read"}, 2);
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_THAT(Log(spec, 1), HasSubstr(R"("action":"continue")"));
}

TEST_F(GangWatch, AVerdictForRankZeroEndsTheWholeGang) {
  StartSupervisor({.timing = {.follow_timeout = std::chrono::milliseconds(20)}});
  GangSpec spec = PlainWorker({"0/ask:1", "0/verdict", "1/hang"}, 2);
  supervisor_->Run(spec);
  ASSERT_TRUE(facts_.Wait<Report>(spec.attempt));
  supervisor_->SetVerdict(spec.attempt, {.step = 1, .action = Action::kStop});
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kFinished);
}

TEST_F(GangWatch, OtherRanksCannotFailTheGangAfterAStopVerdict) {
  GangSpec spec =
      PlainWorker({"0/ask:1", "0/verdict", "1/waiting:0", "1/read", "1/lost:gone", "exit:1"}, 2);
  supervisor_->Run(spec);
  ASSERT_TRUE(facts_.Wait<Report>(spec.attempt));
  supervisor_->SetVerdict(spec.attempt, {.step = 1, .action = Action::kStop});
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kFinished);
  EXPECT_THAT(Log(spec, 1), HasSubstr(R"("action":"stop")"));
}

TEST_F(GangWatch, PastSilenceDoesNotCount) {
  GangSpec spec = PlainWorker({"heartbeat:600000", "heartbeat:0", "1/hang", "report:1", "hang"}, 2);
  spec.stall_timeout = std::chrono::milliseconds(100);
  EXPECT_EQ(RunToFailure(spec).kind, FailureKind::kStall);
}

TEST_F(GangWatch, SilenceLongerThanAnnouncedIsAStall) {
  GangSpec spec = PlainWorker({"heartbeat:50", "hang"}, 2);
  spec.stall_timeout = std::chrono::milliseconds(50);
  EXPECT_EQ(RunToFailure(spec).kind, FailureKind::kStall);
}

TEST_F(GangWatch, AProgramWithoutTheChannelNeverStalls) {
  GangSpec spec = Script("sleep 0.2");
  spec.stall_timeout = std::chrono::milliseconds(20);
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
}

TEST_F(GangWatch, NamesALaggardWhenTheOthersHaveFinished) {
  StartSupervisor({.timing = {.finish_timeout = std::chrono::milliseconds(100)}});
  const Failure failure = RunToFailure(PlainWorker({"2/hang"}, 3));
  EXPECT_EQ(failure.kind, FailureKind::kStall);
  EXPECT_EQ(failure.rank, 2);
  EXPECT_THAT(failure.message, HasSubstr("100 ms"));
}

TEST_F(GangWatch, NamesALaggardWhenRanksOnOtherHostsHaveFinished) {
  StartSupervisor({.timing = {.finish_timeout = std::chrono::milliseconds(100)}});
  const GangSpec spec = PlainWorker({"hang"}, 2);
  supervisor_->Run(spec);
  ASSERT_TRUE(facts_.Wait<Started>(spec.attempt));
  supervisor_->OnPeersFinished(spec.attempt);
  EXPECT_EQ(WaitForEnded(spec).failure->kind, FailureKind::kStall);
}

}  // namespace
}  // namespace attune::gang
