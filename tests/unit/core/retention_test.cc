#include "core/state/retention.h"
#include "base/result.h"

#include "tests/support/mentions.h"
#include "tests/unit/core/brain_harness.h"

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Retention : public BrainTest {
 protected:
  SweepSpec Spec(int keep_last, int keep_best) {
    SweepSpec spec = testing::ToySpec();
    spec.scheduler.name = "cloner";
    spec.max_step = Step(10'000);
    spec.checkpoint = {.keep_last = keep_last, .keep_best = keep_best};
    return spec;
  }
  // Saves a checkpoint and reports its step.
  std::vector<Event> Train(uint32_t number, int64_t step, double score, bool waits = false) {
    auto events = Save(number, step);
    const auto more = Report(number, step, score, waits);
    events.insert(events.end(), more.begin(), more.end());
    return events;
  }
  std::vector<int64_t> Kept(uint32_t number) const {
    std::vector<int64_t> steps;
    for (const KeptCheckpoint& kept : trial(number).checkpoints)
      steps.push_back(kept.ref.step.value);
    return steps;
  }
};

TEST_F(Retention, TheNewestAndTheBestCheckpointsAreKept) {
  Create(Spec(1, 1));
  Train(1, 1, 5);  // trial 1 has the sweep's best report
  Train(0, 1, 0.1);
  Train(0, 2, 0.9);
  Train(0, 3, 0.2);
  Train(0, 4, 0.3);
  EXPECT_THAT(Kept(0), ElementsAre(2, 4));
}

TEST_F(Retention, AnEndedTrialKeepsOnlyTheSweepsBestCheckpoint) {
  Create(Spec(0, 0));
  Train(1, 1, 5);
  Train(0, 1, 0.1);
  Train(0, 2, 0.2);
  EXPECT_THAT(Kept(0), ElementsAre(2)) << "the trial would resume from it";
  Finish(0);
  EXPECT_EQ(Last<CheckpointDropped>([](const CheckpointDropped& dropped) {
              return dropped.checkpoint.trial.number == TrialNumber(0);
            }).checkpoint.step,
            Step(2));
  EXPECT_EQ(sweep().Find(TrialNumber(0)), nullptr) << "no later event can concern it";
  Finish(1);
  EXPECT_THAT(Kept(1), ElementsAre(1));
}

// Like a batch of the conductor, in which checkpoints are dropped only at the end.
TEST_F(Retention, TheNewestAndTheBestOfAThousandInOneBatchAreKept) {
  Create(Spec(2, 3));
  Train(1, 1, 5);
  const Attempt& live = *trial(0).live;
  for (int64_t step = 1; step <= 1000; ++step) {
    const auto tell = [&](auto fact) {
      fact.attempt = live.id;
      ASSERT_TRUE(brain.Execute(RecordFact{.epoch = live.epoch, .fact = fact}, Tick()).ok());
    };
    tell(CheckpointSaved{.checkpoint = {Step(step), Path(0, step), "sha256:"}});
    const double score = 0.001 * static_cast<double>((step * 7) % 1009);
    tell(TrialReported{.report = {Step(step), {{"score", score}}, Seconds(0), false}});
  }
  EXPECT_EQ(trial(0).checkpoints.size(), 1000u);
  brain.Advance(Tick());
  EXPECT_THAT(Kept(0), ElementsAre(144, 288, 432, 999, 1000));
}

TEST_F(Retention, ADroppedCheckpointIsRemovedOnceByItsExecutor) {
  Create(Spec(1, 0));
  Train(1, 1, 5);
  Train(0, 1, 0.1);
  const auto events = Train(0, 2, 0.2);
  ASSERT_NE(Find<CheckpointDropped>(events), nullptr);
  const CheckpointId gone{Id(0), 1, Step(1)};
  EXPECT_EQ(brain.state().removals.at("box").at(gone), Path(0, 1));
  Do(RecordRemoval{gone});
  EXPECT_THAT(brain.state().removals, IsEmpty());
  EXPECT_THAT(Do(RecordRemoval{gone}), IsEmpty());
}

TEST_F(Retention, TheSweepsBestIsKeptUntilThereIsABetterOne) {
  Create(Spec(1, 0));
  Train(0, 1, 0.9);
  Train(0, 2, 0.1);
  EXPECT_THAT(Kept(0), ElementsAre(1, 2));
  Train(1, 1, 0.95);
  EXPECT_THAT(Kept(0), ElementsAre(2));
}

TEST_F(Retention, APinnedCheckpointIsKeptUntilItIsUnpinned) {
  Create(Spec(1, 0));
  Train(1, 1, 5);
  Train(0, 1, 0.1);
  const CheckpointId id{Id(0), 1, Step(1)};
  Do(PinCheckpoint{id, true});
  Train(0, 2, 0.1);
  EXPECT_THAT(Kept(0), ElementsAre(1, 2));
  Do(PinCheckpoint{id, false});
  EXPECT_THAT(Kept(0), ElementsAre(2));
}

TEST_F(Retention, APinSurvivesTheEndAndTheReopeningOfTheSweep) {
  SweepSpec spec = Spec(1, 0);
  spec.stop.max_trials = 1;
  Create(spec);
  Train(0, 1, 0.9);
  Train(0, 2, 0.1);
  Finish(0);
  ASSERT_EQ(StateOf(id()), SweepState::kCompleted);
  Do(PinCheckpoint{{Id(0), 1, Step(1)}, true});
  Do(ExtendSweep{.sweep = id(), .max_trials = 2});
  EXPECT_EQ(Find<CheckpointDropped>(Train(1, 1, 0.95)), nullptr);
}

TEST_F(Retention, ARequestDropsACheckpointOnce) {
  Create(Spec(3, 0));
  Train(1, 1, 5);
  Train(0, 1, 0.1);
  Train(0, 2, 0.2);
  const DropCheckpoint drop{{Id(0), 1, Step(1)}, {}};
  const auto events = Do(drop);
  ASSERT_NE(Find<CheckpointDropped>(events), nullptr);
  EXPECT_THAT(Find<CheckpointDropped>(events)->reason, testing::Mentions("request"));
  EXPECT_EQ(brain.state().removals.at("box").at(drop.checkpoint), Path(0, 1));
  EXPECT_THAT(Kept(0), ElementsAre(2));
  EXPECT_THAT(Do(drop), IsEmpty());
}

// Regression: the checkpoint was recorded again although its files were gone.
TEST_F(Retention, ADroppedCheckpointThatIsSavedAgainStaysDropped) {
  SweepSpec spec = Spec(1, 0);
  spec.max_step = Step(6);
  Create(spec);
  Train(1, 1, 5);  // trial 1 has the sweep's best report
  Train(0, 6, 0.1, /*waits=*/true);
  ASSERT_EQ(StateOf(0), TrialState::kCompleted);
  ASSERT_TRUE(trial(0).live);
  Do(DropCheckpoint{{Id(0), 1, Step(6)}, {}});
  EXPECT_THAT(Save(0, 6), IsEmpty());
  EXPECT_THAT(Kept(0), IsEmpty());
}

TEST_F(Retention, ARequestDoesNotDropANeededCheckpoint) {
  Create(Spec(4, 0));
  Train(0, 4, 5);
  Train(1, 4, 0.1, /*waits=*/true);  // clones trial 0
  Train(0, 5, 9);                    // the sweep's best
  Train(0, 6, 3);
  Train(0, 7, 2);
  const auto refusal = [&](int64_t step) {
    const Error error = RefusalOf(DropCheckpoint{{Id(0), 1, Step(step)}, {}});
    EXPECT_EQ(error.code, ErrorCode::kConflict);
    return error.message;
  };
  EXPECT_THAT(refusal(4), testing::Mentions("trial 1"));
  EXPECT_THAT(refusal(5), testing::Mentions("best"));
  EXPECT_THAT(refusal(7), testing::Mentions("kill"));
  const CheckpointId pinned{Id(0), 1, Step(6)};
  Do(PinCheckpoint{pinned, true});
  EXPECT_THAT(refusal(6), testing::Mentions("attune checkpoint unpin s1/0/1-6"));
  EXPECT_THAT(Kept(0), ElementsAre(4, 5, 6, 7));
  Do(PinCheckpoint{pinned, false});
  Do(DropCheckpoint{pinned, {}});
  EXPECT_THAT(Kept(0), ElementsAre(4, 5, 7));
}

TEST_F(Retention, ARequestDropsACheckpointOfAnEvictedTrialByItsRecord) {
  Create(Spec(1, 0));
  Train(1, 1, 5);
  Train(0, 1, 0.1);
  const auto kept = trial(0).checkpoints;
  Do(KillTrial{Id(0)});
  Finish(0);
  ASSERT_EQ(brain.state().Find(Id(0)), nullptr);
  const DropCheckpoint drop{{Id(0), 1, Step(1)}, RecordOf(0, Step(1), kept)};
  EXPECT_NE(Find<CheckpointDropped>(Do(drop)), nullptr);
  EXPECT_EQ(RefusalOf(drop).code, ErrorCode::kConflict) << "the record is outdated";
}

TEST_F(Retention, TheCheckpointThatALiveAttemptResumedFromIsKept) {
  Create(Spec(1, 0));
  Train(1, 1, 5);
  Train(0, 1, 0.1);
  Fail(0);
  Train(0, 2, 0.1);
  EXPECT_THAT(Kept(0), ElementsAre(1, 2));
  Fail(0);
  EXPECT_THAT(Kept(0), ElementsAre(2));
}

TEST_F(Retention, ADonorsCheckpointIsKeptUntilTheCloneSavesOne) {
  Create(Spec(1, 0));
  Train(0, 4, 5);
  Train(1, 4, 0.1, /*waits=*/true);  // clones trial 0
  EXPECT_EQ(trial(1).donor, (CheckpointId{Id(0), 1, Step(4)}));
  Train(0, 5, 6);
  Train(0, 6, 7);
  EXPECT_THAT(Kept(0), ElementsAre(4, 6));
  const auto events = Finish(1);
  EXPECT_EQ(Find<AttemptEnded>(events)->outcome, Outcome::kPaused);
  EXPECT_EQ(Find<AttemptAssigned>(events)->resume->path, Path(0, 4));
  EXPECT_EQ(trial(1).config, (Config{{"x", int64_t{999}}}));
  Fail(1);
  EXPECT_EQ(trial(1).live->resume->path, Path(0, 4)) << "the clone has no other checkpoint";
  Train(1, 5, 0.2);
  EXPECT_THAT(Kept(0), ElementsAre(6));
}

// Otherwise each attempt of the clone would resume from the removed checkpoint.
TEST_F(Retention, ACloneResumesFromItsOwnCheckpointIfTheDonorsIsGone) {
  Create(Spec(2, 0));
  Train(0, 4, 5);
  Train(1, 4, 0.1, /*waits=*/true);  // clones trial 0
  Finish(1);
  ASSERT_EQ(trial(1).live->resume->path, Path(0, 4));
  Train(0, 5, 6);
  Do(KillTrial{Id(0)});
  Finish(0);
  ASSERT_EQ(sweep().Find(TrialNumber(0)), nullptr);
  const auto events = Do(RecordRemoval{{Id(0), 1, Step(4)}, "box"});
  ASSERT_NE(Find<CheckpointDropped>(events), nullptr);
  EXPECT_EQ(Find<CheckpointDropped>(events)->path, Path(0, 4));
  EXPECT_NE(Find<CheckpointRemoved>(events), nullptr);
  EXPECT_FALSE(trial(1).donor);
  Fail(1, FailureKind::kLease);
  EXPECT_EQ(trial(1).live->resume->path, Path(1, 4));
}

TEST_F(Retention, ReportsRepeatedBeforeACloneStartsAreNotNew) {
  Create(Spec(1, 0));
  Train(0, 4, 5);
  Train(1, 8, 0.1, /*waits=*/true);  // clones trial 0, and must resume from step 4
  EXPECT_THAT(Report(1, 7, 0.1), IsEmpty());
  EXPECT_THAT(Report(1, 8, 0.1, /*waits=*/true), IsEmpty());
}

TEST_F(Retention, ARestartedDonorKeepsTheCheckpointOfItsClone) {
  Create(Spec(1, 0));
  Train(0, 4, 5);
  Train(1, 4, 0.1, /*waits=*/true);  // clones trial 0
  Finish(1);
  Train(0, 5, 6);
  Do(KillTrial{Id(0)});
  Finish(0);
  Train(2, 1, 9);
  const auto kept = trial(0).checkpoints;
  const auto events = Do(ReopenTrial{.record = RecordOf(0, Step(5), kept), .from_start = true});
  ASSERT_NE(Find<CheckpointDropped>(events), nullptr);
  EXPECT_EQ(Find<CheckpointDropped>(events)->path, Path(0, 5));
  EXPECT_EQ(brain.state().removals.at("box").size(), 1u);
}

TEST_F(Retention, TheOldCheckpointOfARestartedDonorIsDroppedOnceTheCloneSavesOne) {
  Create(Spec(1, 0));
  Train(0, 4, 5);
  Train(1, 4, 0.1, /*waits=*/true);  // clones trial 0
  Finish(1);
  const auto kept = trial(0).checkpoints;
  Do(KillTrial{Id(0)});
  Finish(0);
  Train(2, 1, 9);
  Do(ReopenTrial{.record = RecordOf(0, Step(4), kept), .from_start = true});
  EXPECT_THAT(Kept(0), ElementsAre(4));
  const auto events = Train(1, 5, 0.2);
  ASSERT_NE(Find<CheckpointDropped>(events), nullptr);
  EXPECT_EQ(Find<CheckpointDropped>(events)->path, Path(0, 4));
}

TEST_F(Retention, TheBestCheckpointOfARestartedTrialIsDroppedOnceThereIsABetterOne) {
  Create(Spec(1, 1));
  Train(0, 1, 0.9);
  Do(KillTrial{Id(0)});
  Finish(0);
  const KeptCheckpoint best{
      .attempt = 1, .ref = {Step(1), Path(0, 1), ""}, .executor = "box", .values = {0.9}};
  Do(ReopenTrial{.record = RecordOf(0, Step(1), {best}), .from_start = true});
  EXPECT_THAT(Kept(0), ElementsAre(1));
  const auto events = Train(1, 1, 0.95);
  ASSERT_NE(Find<CheckpointDropped>(events), nullptr);
  EXPECT_EQ(Find<CheckpointDropped>(events)->path, Path(0, 1));
}

TEST_F(Retention, APinnedCheckpointFromBeforeARestartIsKeptAndNotResumedFrom) {
  SweepSpec spec = Spec(1, 1);
  spec.stop.max_trials = 2;
  Create(spec);
  Train(1, 1, 5);
  Train(0, 3, 0.9);
  const CheckpointId pinned{Id(0), 1, Step(3)};
  Do(PinCheckpoint{pinned, true});
  const auto begin_anew = [&] {
    const auto kept = trial(0).checkpoints;
    const uint32_t attempts = trial(0).attempts;
    Do(KillTrial{Id(0)});
    Finish(0);
    TrialRecord record = RecordOf(0, Step(3), kept);
    record.attempts = attempts;
    return Do(ReopenTrial{.record = std::move(record), .from_start = true});
  };
  EXPECT_FALSE(Find<AttemptAssigned>(begin_anew())->resume);
  EXPECT_FALSE(Find<AttemptAssigned>(Fail(0))->resume)
      << "no checkpoint was saved since the restart";
  Train(0, 1, 0.1);
  EXPECT_THAT(Kept(0), ElementsAre(3, 1)) << "the newest and the best since the restart";
  EXPECT_EQ(Find<AttemptAssigned>(Fail(0))->resume->step, Step(1));
  EXPECT_FALSE(Find<AttemptAssigned>(begin_anew())->resume);
  EXPECT_THAT(Kept(0), ElementsAre(3));
  const auto events = Do(PinCheckpoint{pinned, false});
  ASSERT_NE(Find<CheckpointDropped>(events), nullptr);
  EXPECT_EQ(Find<CheckpointDropped>(events)->path, Path(0, 3));
}

TEST_F(Retention, AnUnpinnedCheckpointOfAnEndedTrialIsDropped) {
  Create(Spec(1, 0));
  Train(1, 1, 5);
  Train(0, 1, 0.1);
  const CheckpointId pinned{Id(0), 1, Step(1)};
  Do(PinCheckpoint{pinned, true});
  Train(0, 2, 0.2);
  Do(KillTrial{Id(0)});
  Finish(0);
  EXPECT_NE(Find<CheckpointDropped>(Do(PinCheckpoint{pinned, false})), nullptr);
  EXPECT_EQ(sweep().Find(TrialNumber(0)), nullptr);
}

TEST_F(Retention, AnUnpinnedCheckpointOfAnEndedSweepIsDropped) {
  SweepSpec spec = Spec(1, 0);
  spec.stop.max_trials = 2;
  Create(spec);
  Train(1, 1, 5);
  Train(0, 1, 0.1);
  Finish(1);
  const CheckpointId pinned{Id(0), 1, Step(1)};
  Do(PinCheckpoint{pinned, true});
  Train(0, 2, 0.1);
  Finish(0);
  ASSERT_EQ(StateOf(id()), SweepState::kCompleted);
  EXPECT_EQ(Find<CheckpointDropped>(Do(PinCheckpoint{{Id(0), 1, Step(2)}, false})), nullptr)
      << "the sweep file keeps it";
  EXPECT_NE(Find<CheckpointDropped>(Do(PinCheckpoint{pinned, false})), nullptr);
  EXPECT_EQ(Find<CheckpointDropped>(Do(PinCheckpoint{pinned, false})), nullptr)
      << "an unpinned checkpoint is dropped once";
}

TEST_F(Retention, OfARepeatedStepOnlyTheBestAttemptsCheckpointIsKept) {
  Create(Spec(1, 0));
  Train(0, 4, 5);
  Train(1, 8, 0.1, /*waits=*/true);  // clones trial 0
  Finish(1);
  Train(1, 8, 9);
  EXPECT_EQ(trial(1).checkpoints.size(), 1u);
  EXPECT_EQ(trial(1).checkpoints.front().attempt, 2u);
}

TEST_F(Retention, ADonorsCheckpointIsKeptUntilTheGangOfAKilledCloneHasLeft) {
  Create(Spec(1, 0));
  Train(0, 4, 5);
  Train(1, 4, 0.1, /*waits=*/true);  // clones trial 0
  Finish(1);
  Train(0, 5, 6);
  Do(KillTrial{Id(1)});
  EXPECT_THAT(Kept(0), ElementsAre(4, 5));
  Finish(1);
  EXPECT_THAT(Kept(0), ElementsAre(5));
}

TEST_F(Retention, ADonorWithoutACheckpointIsNotCloned) {
  Create(Spec(1, 0));
  Report(0, 4, 5);
  const auto events = Report(1, 4, 0.1, true);
  EXPECT_EQ(Find<TrialDecided>(events)->verdict.kind, VerdictKind::kContinue);
}

TEST_F(Retention, ACheckpointWithoutItsReportIsNotCloned) {
  Create(Spec(1, 0));
  Save(0, 4);
  const auto events = Report(1, 4, 0.1, true);
  EXPECT_EQ(Find<TrialDecided>(events)->verdict.kind, VerdictKind::kContinue);
}

TEST_F(Retention, AnEndedTrialLeavesMemory) {
  Create(Spec(1, 1));
  Train(0, 1, 0.9);
  Train(0, 2, 0.1);
  Finish(0);
  EXPECT_EQ(sweep().Find(TrialNumber(0)), nullptr);
  EXPECT_EQ(sweep().Count(TrialState::kCompleted), 1);
}

TEST_F(Retention, ATrialStaysInMemoryWhileItsCheckpointMayStillBeDropped) {
  Create(Spec(1, 0));
  Train(0, 1, 0.9);
  Train(0, 2, 0.1);
  Finish(0);
  EXPECT_THAT(Kept(0), ElementsAre(1, 2));
  Train(1, 1, 0.95);
  EXPECT_EQ(sweep().Find(TrialNumber(0)), nullptr);
  EXPECT_EQ(brain.state().removals.at("box").size(), 1u);
}

}  // namespace
}  // namespace attune
