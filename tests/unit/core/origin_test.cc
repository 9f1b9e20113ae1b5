#include "core/state/origin.h"

#include "tests/support/mentions.h"
#include "tests/unit/core/brain_harness.h"

namespace attune {
namespace {

// Trials need three CPUs, more than the executor "box" has.
class Origins : public BrainTest {
 protected:
  static SweepSpec OneTrial() {
    SweepSpec spec = testing::ToySpec();
    spec.gang = {.workers = 1, .per_worker = {.cpus = 3}};
    spec.stop.max_trials = 1;
    spec.checkpoint.keep_last = 2;
    spec.failure.backoff = Seconds(0);
    spec.failure.max_restarts = 0;
    return spec;
  }
  // An object store gets a copy of the trial's newest checkpoint, or loses it.
  std::vector<Event> Store(uint32_t number, const std::string& address = "s3://bucket") {
    const KeptCheckpoint& kept = trial(number).checkpoints.back();
    return Do(RecordStored{{Id(number), kept.attempt, kept.ref.step}, kept.ref.digest, address});
  }
  const std::string& HostOf(uint32_t number) { return trial(number).live->ranks[0].executor; }
};

TEST_F(Origins, ATrialResumesOnTheExecutorWithItsCheckpoint) {
  JoinWithFolder("n1", {.cpus = 3}, "of n1");
  JoinWithFolder("n2", {.cpus = 3}, "of n2");
  SweepSpec spec = OneTrial();
  spec.failure.max_restarts = 1;
  Create(spec);
  ASSERT_EQ(HostOf(0), "n1");
  SaveAndReport(0, 1);
  Fail(0);
  EXPECT_EQ(HostOf(0), "n1");
  EXPECT_EQ(trial(0).live->resume->path, Path(0, 1));
}

TEST_F(Origins, AnotherExecutorFetchesACheckpointWhileItsHolderIsFull) {
  JoinWithFolder("n1", {.cpus = 3}, "of n1");
  Create(OneTrial());
  SaveAndReport(0, 1);
  connected = false;
  Tell(0, AttemptEnded{.outcome = Outcome::kKilled});
  SweepSpec urgent = OneTrial();
  urgent.priority = 1;
  const SweepId first = id();
  connected = true;
  Create(urgent);
  EXPECT_EQ(HostOf(0), "n1");
  JoinWithFolder("n2", {.cpus = 3}, "of n2");
  const Trial& moved = *sweep(first).Find(TrialNumber(0));
  EXPECT_EQ(moved.live->ranks[0].executor, "n2");
  EXPECT_EQ(CheckpointToFetch(brain.state(), moved), (CheckpointId{moved.id, 1, Step(1)}));
  EXPECT_EQ(CheckpointToFetch(brain.state(), trial(0)), std::nullopt);
}

TEST_F(Origins, ACheckpointWithoutItsReportIsNotResumedFrom) {
  JoinWithFolder("n1", {.cpus = 3}, "of n1");
  SweepSpec spec = OneTrial();
  spec.checkpoint.keep_last = 1;
  spec.failure.max_restarts = 1;
  Create(spec);
  SaveAndReport(0, 1);
  EXPECT_EQ(Find<CheckpointDropped>(Save(0, 2)), nullptr)
      << "the previous checkpoint stays until the report arrives";
  const auto events = Fail(0);
  ASSERT_NE(Find<CheckpointDropped>(events), nullptr);
  EXPECT_EQ(Find<CheckpointDropped>(events)->path, Path(0, 2));
  EXPECT_EQ(trial(0).live->resume->path, Path(0, 1));
  SaveAndReport(0, 2);
  EXPECT_EQ(trial(0).ResumeCheckpoint()->ref.path, Path(0, 2));
}

TEST_F(Origins, AFailedFetchIsRetriedLaterWithoutACharge) {
  JoinWithFolder("n1", {.cpus = 3}, "of n1");
  Create(OneTrial());
  SaveAndReport(0, 1);
  const auto events =
      Tell(0, AttemptEnded{.outcome = Outcome::kFailed,
                           .failure = {.kind = FailureKind::kHost, .message = "the disk is full"}});
  EXPECT_EQ(trial(0).failures, 0);
  EXPECT_THAT(Find<TrialRequeued>(events)->reason,
              testing::Mentions("attempt 1: the disk is full", "1 s"));
  EXPECT_FALSE(trial(0).live);
  Wait(1);
  EXPECT_EQ(HostOf(0), "n1");
}

TEST_F(Origins, ATrialWaitsWhileTheHolderIsDisconnected) {
  JoinWithFolder("n1", {.cpus = 3}, "of n1");
  const SweepId id = Create(OneTrial());
  SaveAndReport(0, 1);
  Tell(0, AttemptEnded{.outcome = Outcome::kKilled});
  ASSERT_TRUE(trial(0).live);
  reachable = [](const std::string& executor) { return executor != "n1"; };
  JoinWithFolder("n2", {.cpus = 3}, "of n2");
  Tell(0, AttemptEnded{.outcome = Outcome::kKilled});
  EXPECT_FALSE(trial(0).live) << "no executor can send the checkpoint";
  EXPECT_THAT(brain.Waiting(sweep(id)), testing::Mentions("n1"));
  reachable = {};
  Wait(1);
  EXPECT_EQ(HostOf(0), "n1");
}

TEST_F(Origins, ADrainedHolderStillSendsItsCheckpoints) {
  JoinWithFolder("n1", {.cpus = 3}, "of n1");
  Create(OneTrial());
  SaveAndReport(0, 1);
  Do(DrainExecutor{"n1", ""});
  reachable = [](const std::string& executor) { return executor != "n1"; };
  Tell(0, AttemptEnded{.outcome = Outcome::kKilled});
  JoinWithFolder("n2", {.cpus = 3}, "of n2");
  EXPECT_FALSE(trial(0).live);
  reachable = {};
  Wait(1);
  EXPECT_EQ(HostOf(0), "n2");
}

TEST_F(Origins, ATrialStartsOverWithoutAChargeIfTheHolderIsLost) {
  JoinWithFolder("n1", {.cpus = 3}, "of n1");
  Create(OneTrial());
  SaveAndReport(0, 1);
  Lose("n1");
  const auto events = JoinWithFolder("n2", {.cpus = 3}, "of n2");
  ASSERT_NE(Find<AttemptAssigned>(events), nullptr);
  EXPECT_FALSE(Find<AttemptAssigned>(events)->resume);
  EXPECT_THAT(Find<AttemptAssigned>(events)->reason, testing::Mentions("step 1", "n1"));
  EXPECT_EQ(trial(0).failures, 0);
  EXPECT_EQ(trial(0).last_step, Step(1)) << "the report is kept";
}

TEST_F(Origins, AStoredCheckpointOutlivesItsHolder) {
  JoinWithFolder("n1", {.cpus = 3}, "of n1");
  Create(OneTrial());
  SaveAndReport(0, 1);
  EXPECT_NE(Find<CheckpointStored>(Store(0)), nullptr);
  Lose("n1");
  const auto events = JoinWithFolder("n2", {.cpus = 3}, "of n2");
  ASSERT_NE(Find<AttemptAssigned>(events), nullptr);
  EXPECT_EQ(Find<AttemptAssigned>(events)->resume->path, Path(0, 1));
  EXPECT_EQ(Find<AttemptAssigned>(events)->reason, "");
  EXPECT_EQ(CheckpointToFetch(brain.state(), trial(0)), (CheckpointId{Id(0), 1, Step(1)}));
}

TEST_F(Origins, ATrialWithAStoredCheckpointDoesNotWaitForItsHolder) {
  JoinWithFolder("n1", {.cpus = 3}, "of n1");
  Create(OneTrial());
  SaveAndReport(0, 1);
  Store(0);
  reachable = [](const std::string& executor) { return executor != "n1"; };
  JoinWithFolder("n2", {.cpus = 3}, "of n2");
  Tell(0, AttemptEnded{.outcome = Outcome::kKilled});
  EXPECT_EQ(HostOf(0), "n2");
  EXPECT_EQ(trial(0).live->resume->path, Path(0, 1));
}

TEST_F(Origins, AHostThatLostTheFilesOfAStoredCheckpointFetchesTheCopy) {
  JoinWithFolder("n1", {.cpus = 3}, "of n1");
  Create(OneTrial());
  SaveAndReport(0, 1);
  Store(0);
  const auto events = Do(RecordRemoval{{Id(0), 1, Step(1)}, "n1"});
  EXPECT_EQ(Find<CheckpointDropped>(events), nullptr);
  EXPECT_THAT(Do(RecordRemoval{{Id(0), 1, Step(1)}, "n1"}), ::testing::IsEmpty());
  Fail(0, FailureKind::kHost);
  Wait(1);
  ASSERT_EQ(HostOf(0), "n1");
  EXPECT_EQ(trial(0).live->resume->path, Path(0, 1));
  EXPECT_EQ(CheckpointToFetch(brain.state(), trial(0)), (CheckpointId{Id(0), 1, Step(1)}));
}

TEST_F(Origins, ACopyThatIsDeletedNoLongerCounts) {
  JoinWithFolder("n1", {.cpus = 3}, "of n1");
  Create(OneTrial());
  SaveAndReport(0, 1);
  Store(0);
  EXPECT_NE(Find<CheckpointStored>(Store(0, "")), nullptr);
  Lose("n1");
  JoinWithFolder("n2", {.cpus = 3}, "of n2");
  EXPECT_FALSE(trial(0).live->resume);
}

TEST_F(Origins, AStoredCheckpointStaysUntilANewerOneIsStored) {
  JoinWithFolder("n1", {.cpus = 3}, "of n1");
  SweepSpec spec = OneTrial();
  spec.checkpoint.keep_last = 1;
  Create(spec);
  SaveAndReport(0, 1);
  Store(0);
  EXPECT_EQ(Find<CheckpointDropped>(SaveAndReport(0, 2)), nullptr);
  const auto events = Store(0);
  ASSERT_NE(Find<CheckpointDropped>(events), nullptr);
  EXPECT_EQ(Find<CheckpointDropped>(events)->path, Path(0, 1));
}

TEST_F(Origins, AStoredCheckpointIsRecordedOnceAndOnlyWithItsDigest) {
  JoinWithFolder("n1", {.cpus = 3}, "of n1");
  Create(OneTrial());
  SaveAndReport(0, 1);
  EXPECT_THAT(Do(RecordStored{{Id(0), 1, Step(1)}, "sha256:another", "s3://bucket"}),
              ::testing::IsEmpty());
  EXPECT_THAT(Do(RecordStored{{Id(0), 1, Step(2)}, "", "s3://bucket"}), ::testing::IsEmpty());
  Store(0);
  EXPECT_THAT(Store(0), ::testing::IsEmpty());
}

TEST_F(Origins, ATrialFallsBackToAnOlderCheckpoint) {
  JoinWithFolder("n1", {.cpus = 3}, "of n1");
  Create(OneTrial());
  SaveAndReport(0, 1);
  connected = false;
  Tell(0, AttemptEnded{.outcome = Outcome::kKilled});
  Lose("n1");
  connected = true;
  JoinWithFolder("n1", {.cpus = 2}, "of n1");  // joins again, too small for the gang
  JoinWithFolder("n2", {.cpus = 3}, "of n1");  // sees the same folder
  ASSERT_EQ(HostOf(0), "n2");
  EXPECT_EQ(trial(0).live->resume->path, Path(0, 1)) << "n1 has joined again, so n2 can read it";
}

TEST_F(Origins, ACheckpointInASharedFolderResumesAnywhere) {
  JoinWithFolder("n1", {.cpus = 3}, "shared");
  JoinWithFolder("n2", {.cpus = 3}, "shared");
  Create(OneTrial());
  ASSERT_EQ(HostOf(0), "n1");
  SaveAndReport(0, 1);
  const auto events = Lose("n1");
  EXPECT_EQ(HostOf(0), "n2");
  EXPECT_EQ(Find<AttemptAssigned>(events)->resume->path, Path(0, 1));
  EXPECT_EQ(Find<AttemptAssigned>(events)->reason, "");
}

TEST_F(Origins, CheckpointsWithoutAFolderAreReadableEverywhere) {
  Join("n1", {.cpus = 3});
  Create(OneTrial());
  SaveAndReport(0, 1);
  Lose("n1");
  Join("n2", {.cpus = 3});
  EXPECT_EQ(HostOf(0), "n2");
  EXPECT_EQ(trial(0).live->resume->path, Path(0, 1));
}

TEST_F(Origins, AnExecutorWithANewFolderNoLongerHoldsTheCheckpoint) {
  JoinWithFolder("n1", {.cpus = 3}, "first");
  Create(OneTrial());
  SaveAndReport(0, 1);
  Do(JoinExecutor{"n1", "b", "127.0.0.1", {.cpus = 3}, false, "second"});
  ASSERT_EQ(HostOf(0), "n1");
  EXPECT_FALSE(trial(0).live->resume);
}

// ---- executors that stay lost ----------------------------------------------------------------

class LostExecutors : public BrainTest {};

TEST_F(LostExecutors, AreForgottenAfterAWeekWithTheirPendingRemovals) {
  JoinWithFolder("n1", {.cpus = 3}, "of n1");
  SweepSpec spec = testing::ToySpec();
  spec.gang.per_worker.cpus = 3;
  spec.stop.max_trials = 1;
  Create(spec);
  SaveAndReport(0, 1);
  SaveAndReport(0, 2);
  ASSERT_EQ(brain.state().removals.at("n1").size(), 1u);
  Lose("n1");
  const Time due = *brain.Due(Time{now});
  EXPECT_EQ(due.us, brain.state().executors.at("n1").lost_at.us + kForgetLostAfterUs);
  EXPECT_EQ(Find<ExecutorForgotten>(Wait(kForgetLostAfterUs * 1e-6 - 1)), nullptr);
  const auto events = Wait(1);
  ASSERT_NE(Find<ExecutorForgotten>(events), nullptr);
  EXPECT_THAT(Find<ExecutorForgotten>(events)->reason, testing::Mentions("1 checkpoint"));
  EXPECT_FALSE(brain.state().executors.contains("n1"));
  EXPECT_FALSE(brain.state().removals.contains("n1"));
  JoinWithFolder("n1", {.cpus = 3}, "of n1");
  EXPECT_EQ(trial(0).live->resume->path, Path(0, 2))
      << "n1 still holds it after it has joined again";
}

TEST_F(LostExecutors, HaveAMaximumNumber) {
  for (size_t i = 0; i < kLostExecutors; ++i) {
    Join("n" + std::to_string(i), {.cpus = 1});
    EXPECT_EQ(Find<ExecutorForgotten>(Lose("n" + std::to_string(i))), nullptr);
  }
  Join("last", {.cpus = 1});
  const auto events = Lose("last");
  ASSERT_NE(Find<ExecutorForgotten>(events), nullptr);
  EXPECT_EQ(Find<ExecutorForgotten>(events)->name, "n0");
}

}  // namespace
}  // namespace attune
