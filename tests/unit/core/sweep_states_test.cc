#include <limits>

#include "base/result.h"
#include "tests/support/mentions.h"
#include "tests/unit/core/brain_harness.h"

namespace attune {
namespace {

using ::testing::IsEmpty;
using ::testing::StartsWith;

using SweepStates = BrainTest;

TEST_F(SweepStates, APausedSweepStartsNothingAndAsksItsTrialsToYield) {
  Create(testing::ToySpec());
  Do(PauseSweep{id()});
  EXPECT_EQ(sweep().state, SweepState::kPaused);
  ASSERT_TRUE(trial(0).yield_verdict);
  EXPECT_EQ(trial(0).yield_verdict->kind, VerdictKind::kPause);
  Finish(1);
  EXPECT_EQ(sweep().created, 2);
}

TEST_F(SweepStates, ATrialPausesWithItsSweepAtTheFirstReportThatWaits) {
  Create(testing::ToySpec());
  Do(PauseSweep{id()});
  EXPECT_EQ(Find<TrialDecided>(Report(0, 1, 0.9)), nullptr);
  Save(0, 3);
  const auto events = Report(0, 3, 0.9, /*waits=*/true);
  EXPECT_EQ(Find<TrialDecided>(events)->verdict.kind, VerdictKind::kPause);
  EXPECT_EQ(trial(0).state, TrialState::kPaused);
  EXPECT_EQ(Find<AttemptEnded>(Finish(0))->outcome, Outcome::kPaused);
  EXPECT_THAT(brain.Waiting(trial(0)), testing::Mentions("paused"));
}

TEST_F(SweepStates, AResumedSweepContinuesFromTheCheckpointsOfThePause) {
  Create(testing::ToySpec());
  Do(PauseSweep{id()});
  Save(0, 1);
  Report(0, 1, 0.9, true);
  Finish(0);
  const auto events = Do(ResumeSweep{id()});
  ASSERT_NE(Find<AttemptAssigned>(events), nullptr);
  EXPECT_EQ(Find<AttemptAssigned>(events)->resume->path, Path(0, 1));
  EXPECT_EQ(trial(0).failures, 0);
  EXPECT_FALSE(trial(1).yield_verdict);
}

TEST_F(SweepStates, AResumeLetsALeavingTrialContinue) {
  Create(testing::ToySpec());
  Do(PauseSweep{id()});
  Report(0, 1, 0.9, true);
  Do(ResumeSweep{id()});
  EXPECT_EQ(trial(0).state, TrialState::kPending);
  EXPECT_EQ(Find<AttemptEnded>(Finish(0))->outcome, Outcome::kPaused);
  EXPECT_EQ(trial(0).attempts, 2u);
}

TEST_F(SweepStates, AStopEndsATrialThatWasResumedWhileItWasLeaving) {
  Create(testing::ToySpec());
  Do(PauseSweep{id()});
  Report(0, 1, 0.9, true);
  Do(ResumeSweep{id()});
  Do(StopSweep{id()});
  Finish(0);
  EXPECT_EQ(StateOf(0), TrialState::kKilled);
}

TEST_F(SweepStates, ARungIsJudgedEvenWhileTheSweepIsPausing) {
  Create(testing::ToySpec());
  Do(PauseSweep{id()});
  Report(0, 2, 0.1, true);
  EXPECT_EQ(trial(0).state, TrialState::kStopped);
}

TEST_F(SweepStates, AResumeOfTheSweepKeepsTrialsThatTheSchedulerPaused) {
  SweepSpec spec = testing::ToySpec();
  Create(spec);
  Do(PauseSweep{id()});
  Report(0, 2, 0.5, true);
  EXPECT_FALSE(trial(0).paused_with_sweep);
}

TEST_F(SweepStates, AWaitAtARepeatedStepIsAnswered) {
  Create(testing::ToySpec());
  Report(0, 3, 0.9);
  Fail(0);
  Do(PauseSweep{id()});
  const auto events = Report(0, 1, 0.9, true);
  EXPECT_EQ(Find<TrialReported>(events), nullptr);
  EXPECT_EQ(Find<TrialDecided>(events)->verdict.kind, VerdictKind::kPause);
  EXPECT_THAT(Report(0, 1, 0.9, true), IsEmpty());
}

TEST_F(SweepStates, ARunningSweepCanGetMoreTrials) {
  Create(testing::ToySpec());
  Do(ExtendSweep{.sweep = id(), .max_trials = 9});
  EXPECT_EQ(sweep().spec.stop.max_trials, 9);
}

TEST_F(SweepStates, AnExtensionKeepsTheStateOfAlgorithms) {
  SweepSpec spec = testing::ToySpec();
  spec.max_concurrent_trials = 1;
  Create(spec);
  Save(0, 2);
  Report(0, 2, 0.5);
  Do(ExtendSweep{.sweep = id(), .max_step = Step(12)});
  Finish(0);
  EXPECT_EQ(sweep().created, 1) << "the paused trial is promoted before a new one";
  EXPECT_EQ(trial(0).attempts, 2u);
}

TEST_F(SweepStates, ATrialThatWaitsAtTheOldLastStepContinuesToTheNewOne) {
  Create(testing::ToySpec());
  Report(0, 5, 0.9);
  Do(ExtendSweep{.sweep = id(), .max_step = Step(12)});
  const auto events = Report(0, 6, 0.9, true);
  EXPECT_EQ(Find<TrialDecided>(events)->verdict.kind, VerdictKind::kContinue);
  EXPECT_EQ(Find<TrialDecided>(events)->milestone, Step(8));
}

TEST_F(SweepStates, AnEndedSweepRunsAgainWithMoreTrials) {
  SweepSpec spec = testing::ToySpec();
  spec.stop.max_trials = 1;
  Create(spec);
  Finish(0);
  EXPECT_EQ(StateOf(id()), SweepState::kCompleted);
  const auto events = Do(ExtendSweep{.sweep = id(), .max_trials = 2});
  EXPECT_NE(Find<SweepReopened>(events), nullptr);
  EXPECT_EQ(Find<TrialCreated>(events)->config, (Config{{"x", int64_t{1}}}));
  Finish(1);
  EXPECT_EQ(StateOf(id()), SweepState::kCompleted);
}

TEST_F(SweepStates, ASweepWithoutAFiniteReportFails) {
  for (const double value :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
        -std::numeric_limits<double>::infinity()}) {
    SweepSpec spec = testing::ToySpec();
    spec.stop.max_trials = 1;
    const SweepId sweep = Create(spec);
    Report(0, 1, value);
    const auto events = Finish(0);
    EXPECT_EQ(StateOf(sweep), SweepState::kFailed) << value;
    EXPECT_THAT(Find<SweepEnded>(events)->reason, StartsWith("no finite report"));
  }
}

TEST_F(SweepStates, OneFiniteReportIsEnough) {
  SweepSpec spec = testing::ToySpec();
  spec.stop.max_trials = 1;
  Create(spec);
  Report(0, 1, 0.5);
  Report(0, 2, std::numeric_limits<double>::quiet_NaN());
  Finish(0);
  EXPECT_EQ(StateOf(id()), SweepState::kCompleted);
}

TEST_F(SweepStates, ASweepWithoutAProgramHasNoGpuBudget) {
  SweepSpec spec = testing::ToySpec();
  spec.program = {};
  Create(spec);
  EXPECT_EQ(RefusalOf(ExtendSweep{.sweep = id(), .max_gpu_hours = 1}).code, ErrorCode::kInvalid);
}

TEST_F(SweepStates, AnExtensionThatCouldStartNothingIsRefused) {
  SweepSpec spec = testing::ToySpec();
  spec.stop.max_trials = 1;
  Create(spec);
  Finish(0);
  EXPECT_THAT(RefusalOf(ExtendSweep{.sweep = id(), .max_step = Step(12)}).message,
              testing::Mentions("max_trials: ", "1 trial"));
  EXPECT_THAT(RefusalOf(ExtendSweep{.sweep = id(), .max_trials = 2, .max_step = Step(3)}).message,
              testing::Mentions("max_step: ", "3", "6"));
}

TEST_F(SweepStates, ASweepThatEndedTooLongAgoCannotBeReopened) {
  SweepSpec spec = testing::ToySpec();
  spec.stop.max_trials = 1;
  const SweepId first = Create(spec);
  Finish(0);
  for (size_t i = 0; i < kReopenableSweeps; ++i) {
    Create(spec);
    Finish(0);
  }
  EXPECT_EQ(RefusalOf(ExtendSweep{.sweep = first, .max_trials = 2}).code, ErrorCode::kConflict);
  EXPECT_TRUE(brain.Execute(ExtendSweep{.sweep = id(), .max_trials = 2}, Tick()).ok());
}

TEST_F(SweepStates, AnIdempotencyKeyIsRememberedAfterTheEnd) {
  SweepSpec spec = testing::ToySpec();
  spec.stop.max_trials = 1;
  Do(CreateSweep{spec, "text", "key"});
  Finish(0);
  EXPECT_THAT(Do(CreateSweep{spec, "text", "key"}), IsEmpty());
}

TEST_F(SweepStates, StoppingAPausedSweepEndsIt) {
  Create(testing::ToySpec());
  Do(PauseSweep{id()});
  Report(0, 1, 0.9, true);
  Finish(0);
  Report(1, 1, 0.9, true);
  Do(StopSweep{id()});
  EXPECT_EQ(StateOf(0), TrialState::kKilled);
  Finish(1);
  EXPECT_EQ(StateOf(id()), SweepState::kStopped);
}

TEST_F(SweepStates, AStoppingSweepCannotBePaused) {
  Create(testing::ToySpec());
  Do(StopSweep{id()});
  EXPECT_EQ(RefusalOf(PauseSweep{id()}).code, ErrorCode::kConflict);
}

TEST_F(SweepStates, UnpromotedTrialsEndBeforeTheirSweep) {
  SweepSpec spec = testing::ToySpec();
  spec.max_concurrent_trials = 1;
  spec.stop.max_trials = 1;
  Create(spec);
  Do(PauseSweep{id()});
  Report(0, 2, 0.5, true);
  Do(StopSweep{id()});
  Finish(0);
  EXPECT_EQ(StateOf(0), TrialState::kKilled);
  EXPECT_EQ(StateOf(id()), SweepState::kStopped);
}

}  // namespace
}  // namespace attune
