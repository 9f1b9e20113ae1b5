#include <set>

#include "core/state/snapshot.h"
#include "tests/unit/core/brain_harness.h"

namespace attune {
namespace {

using ::testing::IsEmpty;

class LogIdentityTest : public BrainTest {
 protected:
  void Identify(uint64_t identity) {
    Do(IdentifyLog{IdentityOf(brain.state()), LogIdentity(identity), "a backup was restored"});
  }
};

TEST_F(LogIdentityTest, TheFirstIdentityCoversAllEarlierEvents) {
  const SweepId sweep = Create(testing::ToySpec());
  const Epoch before = brain.state().last_epoch;
  Identify(7);
  EXPECT_EQ(IdentityOf(brain.state(), sweep), LogIdentity(7));
  EXPECT_EQ(brain.state().last_epoch, before);
  EXPECT_FALSE(IsOlderThanRestore(brain.state(), before));
}

TEST_F(LogIdentityTest, ASweepKeepsTheIdentityThatItWasCreatedWith) {
  Identify(7);
  const SweepId old = Create(testing::ToySpec());
  Identify(8);
  const SweepId young = Create(testing::ToySpec());
  EXPECT_EQ(IdentityOf(brain.state(), old), LogIdentity(7));
  EXPECT_EQ(IdentityOf(brain.state(), young), LogIdentity(8));
}

TEST_F(LogIdentityTest, ASecondReportOfARestoreChangesNothing) {
  Identify(7);
  Identify(8);
  EXPECT_THAT(Do(IdentifyLog{LogIdentity(7), LogIdentity(9), "another finds it"}), IsEmpty());
}

// The lost part of the log may have given the next epochs to attempts that still run.
TEST_F(LogIdentityTest, EpochsOfTheLostPartAreNotReused) {
  Identify(7);
  Create(testing::ToySpec());
  const Epoch last = brain.state().last_epoch;
  EXPECT_TRUE(trial(0).live);
  Identify(8);
  EXPECT_TRUE(IsOlderThanRestore(brain.state(), last));
  Finish(0);
  ASSERT_TRUE(trial(2).live);
  const Epoch next = trial(2).live->epoch;
  EXPECT_GT(next.value, last.value + 1'000'000'000);
  EXPECT_LT(next.value, uint64_t{1} << 53) << "JSON can hold it exactly";
  EXPECT_FALSE(IsOlderThanRestore(brain.state(), next));

  const TrialReported lost{.attempt = trial(2).live->id,
                           .report = {Step(1), {{"score", 0.5}}, Seconds(0), false}};
  EXPECT_THAT(Do(RecordFact{.epoch = Epoch(last.value + 1), .fact = lost}), IsEmpty());
}

TEST_F(LogIdentityTest, ASnapshotKeepsTheIdentity) {
  Identify(7);
  Create(testing::ToySpec());
  Identify(8);
  const std::string saved = SaveState(brain.state());
  Brain loaded(algorithms, [](const std::string&) { return true; });
  ASSERT_TRUE(loaded.Load(saved).ok());
  EXPECT_EQ(IdentityOf(loaded.state()), LogIdentity(8));
  EXPECT_EQ(SaveState(loaded.state()), saved);
}

TEST_F(LogIdentityTest, ACheckpointDroppedInTheLostPartIsDroppedOnceItsFilesAreMissing) {
  Create(testing::ToySpec());
  SaveAndReport(0, 1);
  Do(PinCheckpoint{{Id(0), 1, Step(1)}, true});
  SaveAndReport(0, 3);
  const CheckpointId newest{Id(0), 1, Step(3)};
  EXPECT_THAT(Do(RecordRemoval{newest, "nobody"}), IsEmpty()) << "another executor holds it";
  const auto events = Do(RecordRemoval{newest, "box"});
  ASSERT_NE(Find<CheckpointDropped>(events), nullptr);
  ASSERT_NE(Find<CheckpointRemoved>(events), nullptr);
  EXPECT_THAT(Do(RecordRemoval{newest, "box"}), IsEmpty());
  EXPECT_THAT(brain.state().removals, IsEmpty());
  Fail(0, FailureKind::kLease);
  const auto assigned = Last<AttemptAssigned>([&](const auto& fact) {
    return fact.attempt == AttemptId{Id(0), 2};
  });
  ASSERT_TRUE(assigned.resume);
  EXPECT_EQ(assigned.resume->step, Step(1));
}

// An executor repeats unacknowledged facts for as long as necessary.
TEST_F(LogIdentityTest, ARemovalInTheLostPartDoesNotDropACheckpointOfTheSameName) {
  Identify(7);
  Create(testing::ToySpec());
  Identify(8);
  SaveAndReport(0, 1);
  const CheckpointId saved{Id(0), 1, Step(1)};
  EXPECT_THAT(Do(RecordRemoval{saved, "box", LogIdentity(7)}), IsEmpty());
  EXPECT_NE(Find<CheckpointDropped>(Do(RecordRemoval{saved, "box", LogIdentity(8)})), nullptr);
}

// The folders of "box" and "other" are unknown, so gangs on both read the checkpoint at its path.
TEST_F(LogIdentityTest, ACheckpointInAnUnknownFolderIsDroppedIfAnExecutorMissesIt) {
  Create(testing::ToySpec());
  SaveAndReport(0, 1);
  Join("other", {.cpus = 1});
  const auto events = Do(RecordRemoval{{Id(0), 1, Step(1)}, "other"});
  EXPECT_NE(Find<CheckpointDropped>(events), nullptr);
  EXPECT_EQ(Find<CheckpointRemoved>(events), nullptr) << "the files may still be on box";
}

// The log has lost the verdict that let rank 0 continue beyond its milestone.
TEST_F(LogIdentityTest, AMilestoneInTheLostPartIsJudgedAtTheNextReport) {
  Create(testing::ToySpec());
  ASSERT_EQ(trial(0).milestone, Step(2));
  Report(0, 5, -1, false);
  EXPECT_EQ(trial(0).live->verdict, VerdictKind::kStop);
  EXPECT_TRUE(trial(0).live->HasUndeliveredVerdict());
  Report(1, 2, -1, true);
  EXPECT_EQ(trial(1).live->verdict, VerdictKind::kStop);
  EXPECT_FALSE(trial(1).live->HasUndeliveredVerdict());
}

TEST_F(LogIdentityTest, AnAdjustedClockChangesOnlyDisplayedTimes) {
  Create(testing::ToySpec());
  const Time before = brain.state().last_time;
  Do(AdjustClock{-5'000'000, "the clock was set back"});
  EXPECT_EQ(ShownTime(brain.state(), before), Time{before.us - 5'000'000});
  EXPECT_GT(brain.state().last_time, before);
  EXPECT_THAT(Do(AdjustClock{-5'000'000, "again"}), IsEmpty());
}

}  // namespace
}  // namespace attune
