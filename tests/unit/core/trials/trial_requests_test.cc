#include "base/result.h"
#include "tests/support/mentions.h"
#include "tests/unit/core/brain_harness.h"

namespace attune {
namespace {

using ::testing::IsEmpty;

using TrialRequests = BrainTest;

SweepSpec OneTrial() {
  SweepSpec spec = testing::ToySpec();
  spec.stop.max_trials = 1;
  return spec;
}

SweepSpec SpecWithoutProgram() {
  SweepSpec spec = testing::ToySpec();
  spec.program = {};
  return spec;
}

TEST_F(TrialRequests, AnEnqueuedConfigurationComesBeforeFurtherProposals) {
  SweepSpec spec = testing::ToySpec();
  spec.max_concurrent_trials = 1;
  Create(spec);
  Do(EnqueueTrial{.sweep = id(), .config = {{"x", int64_t{500}}}});
  EXPECT_EQ(trial(1).state, TrialState::kPending);
  EXPECT_THAT(brain.Waiting(trial(1)), testing::Mentions("max_concurrent_trials: ", "1 trial"));
  Finish(0);
  EXPECT_EQ(trial(1).state, TrialState::kRunning);
}

TEST_F(TrialRequests, AnEnqueuedTrialReplacesNoInitialPoint) {
  SweepSpec spec = testing::ToySpec();
  spec.max_concurrent_trials = 1;
  spec.initial_points = {Config{{"x", int64_t{77}}}, Config{{"x", int64_t{78}}}};
  Create(spec);
  Do(EnqueueTrial{.sweep = id(), .config = {{"x", int64_t{500}}}});
  Finish(0);
  Finish(1);
  EXPECT_EQ(trial(2).config, (Config{{"x", int64_t{78}}}));
}

TEST_F(TrialRequests, AnEnqueuedConfigurationMustLieInTheSpace) {
  Create(testing::ToySpec());
  const Error error = RefusalOf(EnqueueTrial{.sweep = id(), .config = {{"x", int64_t{5000}}}});
  EXPECT_EQ(error.code, ErrorCode::kInvalid);
  EXPECT_THAT(error.message, testing::Mentions("x"));
}

TEST_F(TrialRequests, ARepeatedKeyEnqueuesOnce) {
  Create(testing::ToySpec());
  const EnqueueTrial request{id(), {{"x", int64_t{5}}}, "key"};
  Do(request);
  EXPECT_THAT(Do(request), IsEmpty());
}

TEST_F(TrialRequests, AKilledTrialFreesItsSlotsForTheNext) {
  Create(testing::ToySpec());
  Do(KillTrial{Id(0)});
  EXPECT_FALSE(ShouldRun(trial(0)));
  Tell(0, AttemptEnded{.outcome = Outcome::kKilled});
  EXPECT_EQ(sweep().created, 3);
  EXPECT_EQ(RefusalOf(KillTrial{Id(0)}).code, ErrorCode::kConflict);
  EXPECT_EQ(RefusalOf(KillTrial{Id(99)}).code, ErrorCode::kNotFound);
}

TEST_F(TrialRequests, ARetryResetsTheRestartsOfAFailedTrial) {
  SweepSpec spec = OneTrial();
  spec.failure.max_restarts = 0;
  Create(spec);
  Report(0, 1, 0.9);
  Fail(0);
  EXPECT_EQ(StateOf(id()), SweepState::kFailed);
  const KeptCheckpoint kept{.attempt = 1, .ref = {Step(1), "/c", "sha256:"}, .executor = "box"};
  const auto events = Do(ReopenTrial{RecordOf(0, Step(1), {kept})});
  EXPECT_NE(Find<SweepReopened>(events), nullptr);
  EXPECT_EQ(Find<AttemptAssigned>(events)->resume->path, "/c");
  EXPECT_EQ(Find<AttemptAssigned>(events)->attempt.number, 2u);
  EXPECT_EQ(trial(0).config, (Config{{"x", int64_t{0}}}));
  EXPECT_EQ(sweep().Count(TrialState::kFailed), 0);
  Report(0, 6, 0.9);
  Finish(0);
  EXPECT_EQ(StateOf(0), TrialState::kCompleted);
  EXPECT_EQ(StateOf(id()), SweepState::kCompleted);
}

// Otherwise the history of the trial would lack a report.
TEST_F(TrialRequests, ARetriedTrialSkipsACheckpointWithoutItsReport) {
  Create(testing::ToySpec());
  SaveAndReport(0, 1);
  Save(0, 2);
  Do(PinCheckpoint{{Id(0), 1, Step(2)}, true});
  Do(KillTrial{Id(0)});
  Finish(0);
  const KeptCheckpoint reported{.attempt = 1, .ref = {Step(1), Path(0, 1), ""}, .executor = "box"};
  const KeptCheckpoint pinned{
      .attempt = 1, .ref = {Step(2), Path(0, 2), ""}, .executor = "box", .pinned = true};
  Do(ReopenTrial{RecordOf(0, Step(1), {reported, pinned})});
  ASSERT_EQ(trial(0).checkpoints.size(), 2u);
  EXPECT_EQ(trial(0).NewestCheckpoint()->ref.step, Step(1));
}

TEST_F(TrialRequests, ATrialRetriedInAStoppedSweepRunsAlone) {
  Create(testing::ToySpec());
  Do(StopSweep{id()});
  Report(0, 2, 0.1);
  Finish(0);
  Report(1, 6, 0.9);
  Finish(1);
  Do(ReopenTrial{RecordOf(0, Step(2))});
  EXPECT_EQ(sweep().created, 2);
  EXPECT_EQ(trial(0).state, TrialState::kRunning);
  Fail(0);
  EXPECT_EQ(trial(0).state, TrialState::kRunning) << "it has restarts left";
  Finish(0);
  EXPECT_EQ(StateOf(id()), SweepState::kStopped);
}

TEST_F(TrialRequests, ARestartedTrialKeepsOnlyPinnedCheckpoints) {
  Create(OneTrial());
  Report(0, 6, 0.9);
  Finish(0);
  const KeptCheckpoint loose{.attempt = 1, .ref = {Step(4), "/4", ""}, .executor = "box"};
  const KeptCheckpoint pinned{
      .attempt = 1, .ref = {Step(6), "/6", ""}, .executor = "box", .pinned = true};
  const auto events =
      Do(ReopenTrial{.record = RecordOf(0, Step(6), {loose, pinned}), .from_start = true});
  EXPECT_FALSE(Find<AttemptAssigned>(events)->resume);
  EXPECT_EQ(brain.state().removals.at("box").size(), 1u);
  EXPECT_EQ(Find<CheckpointDropped>(events)->path, "/4");
  EXPECT_NE(Find<TrialReported>(Report(0, 1, 0.9)), nullptr);
}

TEST_F(TrialRequests, AnOutdatedRecordIsRefused) {
  Create(OneTrial());
  Report(0, 2, 0.1);
  const TrialRecord early = RecordOf(0, Step(2));
  Finish(0);
  EXPECT_EQ(RefusalOf(ReopenTrial{early}).code, ErrorCode::kConflict);
  Do(PinCheckpoint{{Id(0), 1, Step(2)}, true});
  Do(ReopenTrial{RecordOf(0, Step(2))});
  EXPECT_EQ(trial(0).state, TrialState::kRunning);
}

TEST_F(TrialRequests, ARecordOlderThanAllKnownChangesIsRefused) {
  Create(OneTrial());
  Report(0, 2, 0.1);
  Finish(0);
  const TrialRecord early = RecordOf(0, Step(2));
  for (size_t i = 0; i < kRecordChanges; ++i) Do(PinCheckpoint{{Id(7), 1, Step(2)}, true});
  EXPECT_LE(brain.state().changes_after, early.seen) << "all changes since the record are known";
  Do(PinCheckpoint{{Id(7), 1, Step(2)}, true});
  EXPECT_EQ(RefusalOf(ReopenTrial{early}).code, ErrorCode::kConflict);
}

TEST_F(TrialRequests, AnExtendedTrialIsNotJudgedBeforeItsNewLastStep) {
  Create(OneTrial());
  Report(0, 2, 0.1);
  Finish(0);
  const auto events = Do(ReopenTrial{.record = RecordOf(0, Step(2)), .until = Step(10)});
  EXPECT_EQ(Find<AttemptAssigned>(events)->milestone, Step(10));
  EXPECT_EQ(Find<TrialDecided>(Report(0, 4, 0.1)), nullptr);
  EXPECT_EQ(Find<TrialDecided>(Report(0, 6, 0.1)), nullptr);
  Report(0, 10, 0.1);
  EXPECT_EQ(trial(0).state, TrialState::kCompleted);
}

TEST_F(TrialRequests, ImpossibleRequestsAreRefusedWithAReason) {
  Create(OneTrial());
  EXPECT_THAT(RefusalOf(ReopenTrial{.record = {.id = Id(0)}}).message,
              testing::Mentions("running"));
  Report(0, 6, 0.9);
  EXPECT_THAT(
      RefusalOf(ReopenTrial{.record = {.id = Id(0), .last_step = Step(6)}, .from_start = true})
          .message,
      testing::Mentions("ending"));
  Finish(0);
  EXPECT_THAT(RefusalOf(ReopenTrial{RecordOf(0, Step(6))}).message, testing::Mentions("complete"));
  EXPECT_THAT(RefusalOf(ReopenTrial{.record = RecordOf(0, Step(6)), .until = Step(6)}).message,
              testing::Mentions("step 6"));
  EXPECT_EQ(RefusalOf(ReopenTrial{.record = {.id = Id(7)}}).code, ErrorCode::kNotFound);
}

TEST_F(TrialRequests, AnAskGetsTheNextTrialWithoutSlots) {
  Create(SpecWithoutProgram());
  EXPECT_EQ(sweep().created, 0);
  const auto events = Do(AskTrial{id(), "key"});
  ASSERT_NE(Find<AttemptAssigned>(events), nullptr);
  EXPECT_THAT(Find<AttemptAssigned>(events)->ranks, IsEmpty());
  EXPECT_EQ(Find<AttemptAssigned>(events)->milestone, Step(2));
  EXPECT_THAT(Do(AskTrial{id(), "key"}), IsEmpty());
  EXPECT_EQ(sweep().by_key.at("key"), TrialNumber(0));
}

TEST_F(TrialRequests, AToldReportIsJudgedAndEndsTheAttemptAtOnce) {
  Create(SpecWithoutProgram());
  Do(AskTrial{id(), ""});
  EXPECT_EQ(Find<TrialDecided>(Report(0, 1, 0.1))->verdict.kind, VerdictKind::kContinue);
  const auto events = Report(0, 2, 0.1);
  EXPECT_EQ(Find<TrialDecided>(events)->verdict.kind, VerdictKind::kStop);
  EXPECT_EQ(Find<AttemptEnded>(events)->outcome, Outcome::kStopped);
  EXPECT_EQ(StateOf(0), TrialState::kStopped);
}

TEST_F(TrialRequests, AnAskTellSweepEndsWithItsTrials) {
  SweepSpec spec = SpecWithoutProgram();
  spec.stop.max_trials = 1;
  Create(spec);
  Do(AskTrial{id(), ""});
  EXPECT_THAT(Do(AskTrial{id(), ""}), IsEmpty());
  Finish(0);
  EXPECT_EQ(StateOf(id()), SweepState::kCompleted);
}

TEST_F(TrialRequests, ATrialThatWasToldToHaveFailedIsOfferedAfterItsBackoff) {
  SweepSpec spec = SpecWithoutProgram();
  spec.failure.backoff = Seconds(10);
  spec.stop.max_trials = 1;
  Create(spec);
  Do(AskTrial{id(), ""});
  Fail(0);
  EXPECT_THAT(Do(AskTrial{id(), ""}), IsEmpty());
  Wait(10);
  EXPECT_EQ(Find<AttemptAssigned>(Do(AskTrial{id(), ""}))->attempt.number, 2u);
}

TEST_F(TrialRequests, ATrialWhoseLeaseExpiresIsOfferedAgainWithoutACharge) {
  Create(SpecWithoutProgram());
  Do(AskTrial{id(), "", Seconds(60)});
  Report(0, 1, 0.1);  // renews the lease
  EXPECT_THAT(Wait(59), IsEmpty());
  EXPECT_EQ(brain.Due(Time{now}), trial(0).live->lease_until);
  const auto events = Wait(1);
  EXPECT_EQ(Find<AttemptEnded>(events)->outcome, Outcome::kLost);
  EXPECT_THAT(Find<TrialRequeued>(events)->reason, testing::Mentions("60 s"));
  EXPECT_EQ(trial(0).failures, 0);
  EXPECT_EQ(Find<AttemptAssigned>(Do(AskTrial{id(), ""}))->attempt.number, 2u);
}

TEST_F(TrialRequests, AHeartbeatRenewsALease) {
  Create(SpecWithoutProgram());
  Do(AskTrial{id(), "", Seconds(60)});
  EXPECT_THAT(Tell(0, AttemptRenewed{}), IsEmpty());  // too early to be logged
  Wait(30);
  EXPECT_NE(Find<AttemptRenewed>(Tell(0, AttemptRenewed{})), nullptr);
  EXPECT_THAT(Wait(59), IsEmpty());
  EXPECT_NE(Find<AttemptEnded>(Wait(2)), nullptr);
}

TEST_F(TrialRequests, AnAskWithoutALeaseGetsAnHour) {
  Create(SpecWithoutProgram());
  Do(AskTrial{id(), ""});
  EXPECT_THAT(Wait(kAskedLease.value - 1), IsEmpty());
  EXPECT_NE(Find<AttemptEnded>(Wait(2)), nullptr);
}

TEST_F(TrialRequests, ATrialLostWhileItsSweepIsPausedIsOfferedAfterTheResume) {
  Create(SpecWithoutProgram());
  Do(AskTrial{id(), "", Seconds(60)});
  Do(PauseSweep{id()});
  Wait(61);
  EXPECT_EQ(StateOf(0), TrialState::kPending);
  Do(ResumeSweep{id()});
  Do(AskTrial{id(), ""});
  EXPECT_EQ(Find<TrialDecided>(Report(0, 1, 0.1))->verdict.kind, VerdictKind::kContinue);
}

TEST_F(TrialRequests, OnlyASweepWithoutAProgramCanBeAsked) {
  Create(testing::ToySpec());
  EXPECT_THAT(RefusalOf(AskTrial{id(), ""}).message, testing::Mentions("program"));
}

TEST_F(TrialRequests, AskingIsLimitedLikeRunning) {
  SweepSpec spec = SpecWithoutProgram();
  spec.max_concurrent_trials = 1;
  Create(spec);
  Do(AskTrial{id(), ""});
  EXPECT_THAT(RefusalOf(AskTrial{id(), ""}).message, testing::Mentions("max_concurrent_trials"));
  Do(KillTrial{Id(0)});
  EXPECT_NE(Find<TrialCreated>(Do(AskTrial{id(), ""})), nullptr);
}

TEST_F(TrialRequests, AnAskWaitsForTheEndOfAnAttempt) {
  Create(SpecWithoutProgram());
  Do(AskTrial{id(), ""});
  const AskTrial next{.sweep = id(), .after = trial(0).live->id};
  EXPECT_THAT(Do(next), IsEmpty());
  Report(0, 1, 0.1);
  EXPECT_THAT(Do(next), IsEmpty());
  Report(0, 2, 0.1);
  EXPECT_EQ(Find<AttemptAssigned>(Do(next))->attempt.trial, Id(1));
}

TEST_F(TrialRequests, RestartsBackOff) {
  SweepSpec spec = OneTrial();
  spec.failure.backoff = Seconds(10);
  Create(spec);
  const auto first = Fail(0);
  const Time due = Find<TrialRequeued>(first)->not_before;
  EXPECT_GE(due.us, now + 4'900'000);
  EXPECT_LE(due.us, now + 10'000'000);
  EXPECT_EQ(trial(0).state, TrialState::kPending);
  EXPECT_THAT(brain.Waiting(trial(0)), testing::Mentions("failure.backoff"));
  EXPECT_EQ(brain.Due(Time{now}), due);
  EXPECT_NE(Find<AttemptAssigned>(Wait(10)), nullptr);
  const Time again = Find<TrialRequeued>(Fail(0))->not_before;
  EXPECT_GE(again.us, now + 9'900'000);
  EXPECT_LE(again.us, now + 20'000'000);
}

TEST_F(TrialRequests, ALostExecutorCausesNoBackoff) {
  SweepSpec spec = OneTrial();
  spec.failure.backoff = Seconds(10);
  Create(spec);
  EXPECT_NE(Find<AttemptAssigned>(Fail(0, FailureKind::kLease)), nullptr);
}

TEST_F(BrainTest, ATrialThatDoesNotExistCannotBeAnnotated) {
  Create(testing::ToySpec());
  EXPECT_EQ(RefusalOf(AnnotateTrial{Id(99), {.note = "a note"}}).code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace attune
