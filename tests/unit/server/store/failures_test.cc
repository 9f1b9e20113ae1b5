#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/server/store/reader_fixture.h"

namespace attune::server {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class FailuresTest : public ReaderTest {
 protected:
  // Adds a trial of s1 whose only attempt fails.
  void Fail(uint32_t number, const std::string& message, FailureKind kind = FailureKind::kExit) {
    Add(TrialCreated{Trial(number), SampleConfig(0.1), "random"});
    Add(AttemptAssigned{.attempt = {Trial(number), 1}, .epoch = Epoch(100 + number)});
    Add(AttemptEnded{.attempt = {Trial(number), 1},
                     .outcome = Outcome::kFailed,
                     .failure = {.kind = kind, .rank = 0, .message = message, .log_tail = "end"}});
  }

  Failures Read() { return reader_->GroupFailures(SweepId(1)).value(); }
};

TEST_F(FailuresTest, TheFirstFailureHasItsRankAndTheEndOfItsLog) {
  const Failures failures = Read();
  ASSERT_TRUE(failures.first);
  EXPECT_EQ(failures.first->attempt, (AttemptId{Trial(0), 1}));
  EXPECT_EQ(failures.first->rank, 1);
  EXPECT_EQ(failures.first->kind, "signal");
  EXPECT_EQ(failures.first->failure,
            "rank 1 was killed by signal 9 (SIGKILL)\nepoch 4\nout of memory");
}

TEST_F(FailuresTest, MessagesThatDifferInNumbersAreOneGroup) {
  Fail(4, "rank 0: cannot read /data/s1/4/x.csv");
  Fail(5, "rank 3: cannot read /data/s1/5/x.csv");
  Fail(6, "rank 0 left with exit code 1");
  const Failures failures = Read();
  const FailureGroup& group = failures.groups.front();
  EXPECT_EQ(group.pattern, "rank N: cannot read …/x.csv");
  EXPECT_EQ(group.attempts, 2);
  EXPECT_EQ(group.trials, 2);
  EXPECT_THAT(group.some_trials, ElementsAre(TrialNumber(4), TrialNumber(5)));
  EXPECT_EQ(group.first.failure, "rank 0: cannot read /data/s1/4/x.csv");
  EXPECT_LT(group.first.time, group.last);
}

TEST_F(FailuresTest, KindsAreSeparateGroups) {
  const size_t before = Read().groups.size();
  Fail(4, "no answer", FailureKind::kStall);
  Fail(5, "no answer", FailureKind::kHost);
  EXPECT_THAT(Read().groups, SizeIs(before + 2));
}

TEST_F(FailuresTest, RestartsOfATrialCountItOnce) {
  Fail(4, "disk full");
  Add(TrialRequeued{Trial(4), "again"});
  Add(AttemptAssigned{.attempt = {Trial(4), 2}, .epoch = Epoch(200)});
  Add(AttemptEnded{.attempt = {Trial(4), 2},
                   .outcome = Outcome::kFailed,
                   .failure = {.kind = FailureKind::kExit, .message = "disk full"}});
  EXPECT_EQ(Read().groups.front().attempts, 2);
  EXPECT_EQ(Read().groups.front().trials, 1);
}

TEST_F(FailuresTest, GroupsAreBounded) {
  const Failures before = Read();
  std::string message;
  for (uint32_t number = 0; number <= kFailureGroupsMax; ++number) {
    message += 'x';
    Fail(4 + number, message);
  }
  const Failures failures = Read();
  EXPECT_THAT(failures.groups, SizeIs(kFailureGroupsMax));
  EXPECT_EQ(failures.attempts, before.attempts + static_cast<int64_t>(kFailureGroupsMax) + 1);
  EXPECT_EQ(failures.ungrouped, failures.attempts - static_cast<int64_t>(kFailureGroupsMax));
}

TEST_F(FailuresTest, OfAnUnknownSweepAreNotFound) {
  EXPECT_EQ(reader_->GroupFailures(SweepId(99)).error().code, ErrorCode::kNotFound);
}

TEST_F(ReaderTest, BranchesAreClonesAndPromotionsInTheirOrder) {
  Add(TrialPromoted{.trial = Trial(2), .reason = {.rule = "asha", .rung = Step(1)}});
  const auto branches = reader_->Branches(SweepId(1), EventSeq(0), 10).value();
  ASSERT_FALSE(branches.empty());
  EXPECT_EQ(branches.back().trial, TrialNumber(2));
  EXPECT_EQ(branches.back().donor, std::nullopt);
  EXPECT_EQ(branches.back().step, Step(1));
  EXPECT_THAT(reader_->Branches(SweepId(1), branches.back().seq, 10).value(), SizeIs(0));
}

}  // namespace
}  // namespace attune::server
