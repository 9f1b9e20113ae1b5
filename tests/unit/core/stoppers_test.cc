#include "core/state/stoppers.h"

#include <algorithm>
#include <limits>

#include "tests/support/mentions.h"
#include "tests/unit/core/brain_harness.h"

namespace attune {
namespace {

class Stoppers : public BrainTest {
 protected:
  static SweepSpec Spec(StopPolicy stop) {
    SweepSpec spec = testing::ToySpec();
    spec.scheduler.name = "cloner";  // stops no trial with a good score
    spec.max_step = Step(100);
    spec.stop = stop;
    return spec;
  }
};

TEST_F(Stoppers, AReachedTargetEndsEveryTrialAtItsNextReport) {
  Create(Spec({.targets = {0.9}}));
  const auto events = Report(0, 1, 0.95);
  ASSERT_NE(Find<SweepStopping>(events), nullptr);
  EXPECT_EQ(Find<SweepStopping>(events)->outcome, SweepState::kCompleted);
  EXPECT_THAT(Find<SweepStopping>(events)->reason, testing::Mentions("trial 0", "score 0.95"));
  for (const uint32_t number : {0, 1}) {
    Report(number, 2, 0.5, /*waits=*/true);
    EXPECT_EQ(StateOf(number), TrialState::kStopped);
    Finish(number);
  }
  EXPECT_EQ(StateOf(id()), SweepState::kCompleted);
  EXPECT_THAT(DescribeEnding().reason, testing::Mentions("score 0.95"));
}

TEST_F(Stoppers, TheReasonNamesTheFirstReportThatReachedTheTarget) {
  Create(Spec({.targets = {0.9}}));
  const Attempt& live = *trial(0).live;
  for (const int64_t step : {1, 2, 3}) {  // one batch, without consequences in between
    const attune::Report report{Step(step), {{"score", 0.9 + 0.01 * static_cast<double>(step)}}};
    ASSERT_TRUE(brain.Execute(RecordFact{live.epoch, TrialReported{live.id, report}}, Tick()).ok());
  }
  const auto events = brain.Advance(Tick());
  EXPECT_THAT(Find<SweepStopping>(events)->reason, testing::Mentions("score 0.91", "step 1"));
}

TEST_F(Stoppers, NanReachesNoTarget) {
  Create(Spec({.targets = {0.9}}));
  EXPECT_EQ(Find<SweepStopping>(Report(0, 1, std::numeric_limits<double>::quiet_NaN())), nullptr);
  EXPECT_EQ(Find<SweepStopping>(Report(0, 2, std::numeric_limits<double>::infinity())), nullptr);
}

TEST_F(Stoppers, TheTimeOfASweepStopsWhileItIsPaused) {
  Create(Spec({.max_time = Seconds(60)}));
  Wait(20);
  Do(PauseSweep{id()});
  EXPECT_FALSE(brain.Due(Time{now}));
  Wait(1000);
  EXPECT_FALSE(sweep().stopping_as);
  Do(ResumeSweep{id()});
  EXPECT_NEAR(static_cast<double>(brain.Due(Time{now})->us - now), 40e6, 10);
  const auto events = Wait(40);
  EXPECT_THAT(Find<SweepStopping>(events)->reason, testing::Mentions("stop.max_time", "60 s"));
}

TEST_F(Stoppers, ALimitIsCheckedBeforeCheckpointsAreDropped) {
  SweepSpec spec = Spec({.max_time = Seconds(60)});
  spec.checkpoint.keep_last = 1;
  Create(spec);
  SaveAndReport(0, 1);
  Save(0, 2);
  now += 61'000'000;
  const Attempt& live = *trial(0).live;
  const attune::Report report{Step(2), {{"score", 0.9}}};
  ASSERT_TRUE(brain.Execute(RecordFact{live.epoch, TrialReported{live.id, report}}, Tick()).ok());
  const auto events = brain.Advance(Tick());
  const auto place = [&](auto is) { return std::ranges::find_if(events, is) - events.begin(); };
  const auto stopping =
      place([](const Event& event) { return std::holds_alternative<SweepStopping>(event.fact); });
  const auto dropped = place(
      [](const Event& event) { return std::holds_alternative<CheckpointDropped>(event.fact); });
  EXPECT_LT(dropped, std::ssize(events));
  EXPECT_LT(stopping, dropped);
}

TEST_F(Stoppers, GpuHoursAreCountedWhileGangsHoldGpus) {
  SweepSpec spec = Spec({.max_gpu_hours = 1});
  spec.gang = {.workers = 2, .per_worker = {.cpus = 0, .gpus = 1}};
  Join("gpus", {.gpus = 2});
  Create(spec);
  EXPECT_NEAR(static_cast<double>(brain.Due(Time{now})->us - now), 1800e6, 10);
  Wait(900);
  Finish(0);
  EXPECT_NEAR(static_cast<double>(brain.Due(Time{now})->us - now), 900e6, 20);
  EXPECT_NE(Find<SweepStopping>(Wait(900)), nullptr);
}

TEST_F(Stoppers, AShareOfAGpuCountsAsOne) {
  SweepSpec spec = Spec({.max_gpu_hours = 1});
  spec.gang = {.per_worker = {.cpus = 0, .gpus = 1}, .gpu_percent = 25};
  spec.max_concurrent_trials = 2;
  Join("gpus", {.gpus = 1});
  Create(spec);
  EXPECT_NEAR(static_cast<double>(brain.Due(Time{now})->us - now), 7200e6, 10);
  Wait(3600);
  Finish(0);
  EXPECT_NEAR(static_cast<double>(brain.Due(Time{now})->us - now), 3600e6, 20);
}

TEST_F(Stoppers, ASweepEndsWhenItsTrialsStopImproving) {
  Create(Spec({.patience = 2}));
  Report(0, 1, 2);
  Finish(0);
  Report(1, 1, 3);
  Finish(1);
  Report(2, 1, 1.5);
  Finish(2);
  EXPECT_FALSE(sweep().stopping_as);
  Report(3, 1, 1.5);
  const auto events = Finish(3);
  EXPECT_THAT(Find<SweepStopping>(events)->reason, testing::Mentions("2 trials"));
}

TEST_F(Stoppers, ATrialThatDoesNotImproveStops) {
  Create(Spec({.trial_patience = 2}));
  Report(0, 1, 2);
  Report(0, 2, 1);
  const auto yielding = Report(0, 3, 1);
  ASSERT_NE(Find<TrialYielding>(yielding), nullptr);
  EXPECT_EQ(trial(0).state, TrialState::kRunning) << "this report does not wait";
  const auto events = Report(0, 4, 1, /*waits=*/true);
  EXPECT_EQ(Find<TrialDecided>(events)->verdict.reason.rule, "trial_patience");
  EXPECT_THAT(Find<TrialEnded>(events)->reason, testing::Mentions("2 reports"));
}

TEST_F(Stoppers, ATrialWithAWaitingReportStopsAtOnce) {
  Create(Spec({.trial_patience = 1}));
  Report(0, 3, 2);
  EXPECT_EQ(Find<TrialDecided>(Report(0, 4, 1))->verdict.kind, VerdictKind::kStop);
}

TEST_F(Stoppers, ALimitOfTheTrialHasPrecedenceOverACloneVerdict) {
  Create(Spec({.trial_patience = 1}));
  Save(0, 4);
  Report(0, 4, 5);
  Report(1, 3, 0.2);
  EXPECT_EQ(Find<TrialDecided>(Report(1, 4, 0.1))->verdict.kind, VerdictKind::kStop);
}

TEST_F(Stoppers, TheTrainingTimeOfATrialAddsUpOverItsAttempts) {
  Create(Spec({.max_trial_time = Seconds(10)}));
  Tell(0, TrialReported{.report = {Step(1), {{"score", 2.0}}, Seconds(6)}});
  Fail(0);
  Tell(0, TrialReported{.report = {Step(2), {{"score", 2.0}}, Seconds(3)}});
  EXPECT_FALSE(trial(0).yield_verdict);
  Tell(0, TrialReported{.report = {Step(3), {{"score", 2.0}}, Seconds(4)}});
  ASSERT_TRUE(trial(0).yield_verdict);
  EXPECT_THAT(trial(0).yield_verdict->reason.text, testing::Mentions("10 s"));
}

TEST_F(Stoppers, ATrialRequestedByAUserIsExemptFromTheSweepsLimits) {
  Create(Spec({.targets = {0.9}}));
  Do(EnqueueTrial{.sweep = id(), .config = {{"x", int64_t{5}}}});
  Finish(0);
  Report(1, 1, 0.95);
  EXPECT_TRUE(trial(1).yield_verdict);
  EXPECT_FALSE(trial(2).yield_verdict);
}

}  // namespace
}  // namespace attune
