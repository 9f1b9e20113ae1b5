#include "simulator/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cli/algorithms.h"
#include "simulator/simulation.h"
#include "simulator/timeline.h"

namespace attune::simulate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

using Table = std::vector<std::vector<double>>;

// Trial n reports row n; a step takes ten seconds.
class Written : public Curves {
 public:
  explicit Written(Table rows) : rows_(std::move(rows)) {}
  double ValueAt(TrialNumber trial, const Config&, Step step) const override {
    return rows_.at(trial.value).at(static_cast<size_t>(step.value - 1));
  }
  std::optional<Seconds> SecondsOf(TrialNumber, Step) const override { return Seconds(10); }
  Step LastStep(TrialNumber trial) const override {
    return Step(std::ssize(rows_.at(trial.value)));
  }

 private:
  Table rows_;
};

AlgorithmSpec Asha(int64_t min = 1, const char* mode = "stop") {
  return {.name = "asha",
          .options = {{"min", min},
                      {"mode", std::string(mode)},
                      {"reduction_factor", int64_t{2}},
                      {"brackets", int64_t{1}}}};
}

SweepSpec Spec(int trials, int64_t max_step, AlgorithmSpec scheduler) {
  return {.name = "recorded",
          .program = {.command = {"train"}},
          .objectives = {Minimise("loss")},
          .space = SearchSpace({{.name = "lr", .domain = FloatDomain{.min = 0, .max = 1}}}),
          .searcher = {.name = "random"},
          .scheduler = std::move(scheduler),
          .max_step = Step(max_step),
          .stop = {.max_trials = trials}};
}

// Records a sweep on `slots` slots. Each attempt takes two seconds in addition to its steps.
Recording Record(const SweepSpec& spec, const Curves& curves, int slots = 1) {
  Recording recording(spec);
  const auto ran =
      Simulate(spec, cli::AllAlgorithms(), curves, {.slots = slots, .startup = Seconds(2)},
               [&](const Event& event) { recording.Observe(event); });
  EXPECT_TRUE(ran.ok()) << ran.error().message;
  return recording;
}

Replay Under(const Recording& recording, AlgorithmSpec scheduler, int slots = 1) {
  SweepSpec spec = recording.spec();
  spec.scheduler = std::move(scheduler);
  auto replay = ReplayUnder(recording, spec, cli::AllAlgorithms(), slots);
  EXPECT_TRUE(replay.ok()) << replay.error().message;
  return *std::move(replay);
}

std::vector<int64_t> Steps(const Replay::Course& course) {
  std::vector<int64_t> steps;
  for (const Replay::Trial& trial : course.trials) steps.push_back(trial.step.value);
  return steps;
}

const Table kFour = {{0.9, 0.8, 0.7, 0.6},    // the first trial at each rung, so it continues
                     {0.5, 0.4, 0.3, 0.2},    // always the best so far
                     {0.8, 0.75, 0.74, 0.1},  // the best final value, but late
                     {0.7, 0.65, 0.64, 0.63}};

// Rung 1: 0.9 is 1 of 1; 0.5 is 1 of 2; 0.8 is 2 of 3, one of these continues; 0.7 is 2 of 4. Rung
// 2: 0.8 is 1 of 1; 0.4 is 1 of 2; 0.65 is 2 of 3.
TEST(Replay, MatchesAshaWorkedOutByHand) {
  const Recording recording = Record(Spec(4, 4, {.name = "fifo"}), Written(kFour));
  EXPECT_EQ(recording.summary().slot_seconds, 4 * (2 + 40));
  EXPECT_EQ(recording.StartupTime().value, 2);
  EXPECT_EQ(recording.summary().best->trial, TrialNumber(2));

  const Replay replay = Under(recording, Asha());
  const Replay::Course& course = replay.if_worst;
  EXPECT_THAT(Steps(course), ElementsAre(4, 4, 1, 2));
  EXPECT_EQ(course.trials[2].state, TrialState::kStopped);
  EXPECT_THAT(course.trials[2].reason, HasSubstr("rank 2 of 3 at rung 1"));
  EXPECT_EQ(course.trials[3].state, TrialState::kStopped);
  EXPECT_EQ(course.summary.slot_seconds, 4 * 2 + 10 * (4 + 4 + 1 + 2));
  EXPECT_EQ(course.summary.steps, 11);
  EXPECT_EQ(course.summary.best->trial, TrialNumber(1));
  EXPECT_EQ(course.summary.best->value, 0.2);
  for (uint32_t trial = 0; trial < 4; ++trial) EXPECT_FALSE(replay.IsUnknown(TrialNumber(trial)));
  EXPECT_EQ(Steps(replay.if_best), Steps(course));
}

TEST(Replay, RepeatsTheRecordingUnderTheSameScheduler) {
  for (const char* mode : {"stop", "promote"}) {
    const Recording recording = Record(Spec(4, 4, Asha(1, mode)), Written(kFour), 2);
    const Replay replay = Under(recording, Asha(1, mode), 2);
    EXPECT_EQ(replay.if_worst.summary.slot_seconds, recording.summary().slot_seconds) << mode;
    EXPECT_EQ(replay.if_worst.summary.wall, recording.summary().wall) << mode;
    EXPECT_EQ(replay.if_worst.summary.trials, recording.summary().trials) << mode;
    EXPECT_EQ(replay.if_worst.summary.best->value, recording.summary().best->value) << mode;
    EXPECT_EQ(Steps(replay.if_best), Steps(replay.if_worst)) << mode;
  }
}

// Trial 2 is recorded up to step 1 and trial 3 up to step 2, but fifo trains each to step 4. The
// cost is known, the values are not.
TEST(Replay, CountsTheCostOfUnknownReports) {
  const Recording recording = Record(Spec(4, 4, Asha()), Written(kFour));
  const Replay replay = Under(recording, {.name = "fifo"});
  EXPECT_THAT(Steps(replay.if_worst), ElementsAre(4, 4, 4, 4));
  EXPECT_EQ(replay.if_worst.summary.slot_seconds, 4 * (2 + 40));
  EXPECT_EQ(replay.if_best.summary.slot_seconds, 4 * (2 + 40));
  EXPECT_FALSE(replay.IsUnknown(TrialNumber(1)));
  EXPECT_TRUE(replay.IsUnknown(TrialNumber(2)));
  EXPECT_TRUE(replay.IsUnknown(TrialNumber(3)));
  EXPECT_EQ(replay.if_best.summary.best->value, 0.2);  // an assumed value is never the best
  EXPECT_EQ(replay.if_best.summary.best->trial, TrialNumber(1));
}

// The first rung is at step 2, so trial 2 trains past its recording. It stops there in the worst
// case. In the best case it trains to the end, and trial 3 is stopped as the third of four.
TEST(Replay, BoundsUnknownResultsByTwoCourses) {
  const Recording recording = Record(Spec(4, 4, Asha()), Written(kFour));
  const Replay replay = Under(recording, Asha(2));
  EXPECT_THAT(Steps(replay.if_worst), ElementsAre(4, 4, 2, 4));
  EXPECT_THAT(Steps(replay.if_best), ElementsAre(4, 4, 4, 2));
  EXPECT_TRUE(replay.IsUnknown(TrialNumber(2)));
  EXPECT_TRUE(replay.IsUnknown(TrialNumber(3)));
  EXPECT_EQ(replay.if_worst.summary.steps, 14);
  EXPECT_EQ(replay.if_best.summary.steps, 14);
}

// The replay keeps the interval of ten steps between reports. Trials that failed, or ended without
// an order to stop, do so again.
class Sparse final : public Written {
 public:
  Sparse() : Written({}) {}
  double ValueAt(TrialNumber trial, const Config&, Step step) const override {
    return trial.value + 1.0 / static_cast<double>(step.value);
  }
  Step NextReport(TrialNumber, Step after) const override { return Step(after.value + 10); }
  std::optional<Outcome> OutcomeAfter(TrialNumber trial, Step step) const override {
    if (trial.value == 0 && step >= Step(20)) return Outcome::kFailed;
    if (trial.value == 1 && step >= Step(30)) return Outcome::kFinished;
    return std::nullopt;
  }
};

TEST(Replay, RepeatsReportsFailuresAndEnds) {
  SweepSpec spec = Spec(3, 40, {.name = "fifo"});
  spec.failure.max_restarts = 0;
  const Recording recording = Record(spec, Sparse());
  EXPECT_EQ(recording.reports(), 2 + 3 + 4);
  const Replay replay = Under(recording, {.name = "fifo"});
  EXPECT_THAT(Steps(replay.if_worst), ElementsAre(20, 30, 40));
  EXPECT_EQ(replay.if_worst.trials[0].state, TrialState::kFailed);
  EXPECT_EQ(replay.if_worst.trials[1].state, TrialState::kCompleted);
  EXPECT_EQ(replay.if_worst.summary.slot_seconds, recording.summary().slot_seconds);
  EXPECT_EQ(replay.if_worst.summary.steps, 90);
}

class Failing final : public Written {
 public:
  Failing() : Written(Table(8, {0.5, 0.4})) {}
  std::optional<Outcome> OutcomeAfter(TrialNumber trial, Step step) const override {
    if (trial.value % 2 == 1 || step < Step(1)) return std::nullopt;
    return Outcome::kFailed;
  }
};

TEST(Replay, EndsTheSweepAfterTooManyFailures) {
  SweepSpec spec = Spec(8, 2, {.name = "fifo"});
  spec.failure.max_restarts = 0;
  const Recording recording = Record(spec, Failing(), 3);
  spec.failure.max_failed_trials = 1;
  const auto replayed = ReplayUnder(recording, spec, cli::AllAlgorithms(), 3);
  ASSERT_TRUE(replayed.ok()) << replayed.error().message;
  const Replay& replay = *replayed;
  EXPECT_EQ(replay.if_worst.summary.state, SweepState::kFailed);
  EXPECT_EQ(replay.if_worst.summary.Count(TrialState::kFailed), 2);
  EXPECT_EQ(replay.if_worst.trials[1].state, TrialState::kKilled);
}

TEST(Replay, AppliesANewLimit) {
  const Recording recording = Record(Spec(4, 4, {.name = "fifo"}), Written(kFour));
  SweepSpec spec = recording.spec();
  spec.stop.max_trials = 2;
  const Replay replay = *ReplayUnder(recording, spec, cli::AllAlgorithms(), 1);
  EXPECT_THAT(Steps(replay.if_worst), ElementsAre(4, 4, 0, 0));
  EXPECT_EQ(replay.if_worst.trials[2].state, TrialState::kPending);
  EXPECT_EQ(replay.if_worst.summary.best->value, 0.2);
}

AlgorithmSpec Pbt() {
  return {.name = "pbt",
          .options = {{"perturbation_interval", int64_t{1}},
                      {"quantile_fraction", 0.25},
                      {"explore", std::string()},
                      {"resample_probability", 0.25},
                      {"smaller_factor", 0.8},
                      {"larger_factor", 1.2},
                      {"population", int64_t{4}},
                      {"synchronous", false}}};
}

TEST(Replay, KeepsTheReportsOfACloneBeforeItsCopy) {
  const Recording recording = Record(Spec(4, 4, Pbt()), Written(kFour), 4);
  ASSERT_TRUE(recording.trials()[2].cloned);  // the worst of four at step 3: 0.74 is worse than 0.7
  EXPECT_EQ(recording.trials()[2].curve.size(), 3);
  const Replay replay = Under(recording, {.name = "fifo"});
  EXPECT_TRUE(replay.IsUnknown(TrialNumber(2)));
  EXPECT_FALSE(replay.IsUnknown(TrialNumber(1)));
}

TEST(Replay, RefusesASchedulerThatCopiesWeights) {
  const Recording recording = Record(Spec(4, 4, {.name = "fifo"}), Written(kFour), 4);
  SweepSpec spec = recording.spec();
  spec.scheduler = Pbt();
  EXPECT_THAT(ReplayUnder(recording, spec, cli::AllAlgorithms(), 4).error().message,
              HasSubstr("scheduler.name: pbt"));
}

TEST(Replay, RefusesARecordingWithoutResults) {
  const Recording recording(Spec(4, 4, {.name = "fifo"}));
  EXPECT_THAT(ReplayUnder(recording, recording.spec(), cli::AllAlgorithms(), 1).error().message,
              HasSubstr("no trial"));
}

// Runs a sweep and records its events with `spec`, which differs from the spec of the run.
Recording RecordAs(const SweepSpec& spec, const SweepSpec& ran, const Curves& curves) {
  Recording recording(spec);
  const auto summary = Simulate(ran, cli::AllAlgorithms(), curves, {.slots = 1},
                                [&](const Event& event) { recording.Observe(event); });
  EXPECT_TRUE(summary.ok()) << summary.error().message;
  return recording;
}

TEST(Replay, AcceptsASweepWithWarmStart) {
  const SweepSpec cold = Spec(4, 4, {.name = "fifo"});
  SweepSpec warm = cold;
  warm.warm_start = {SweepId(7)};
  const Replay replay = Under(RecordAs(warm, cold, Written(kFour)), Asha());
  EXPECT_THAT(Steps(replay.if_worst), ElementsAre(4, 4, 1, 2));
}

TEST(Simulate, RefusesAWarmStart) {
  SweepSpec warm = Spec(4, 4, {.name = "fifo"});
  warm.warm_start = {SweepId(7)};
  EXPECT_THAT(Simulate(warm, cli::AllAlgorithms(), Written(kFour), {.slots = 1}).error().message,
              HasSubstr("warm_start: "));
}

// Users enqueued two of the four trials. Enqueued trials do not count towards max_trials.
TEST(Replay, RepeatsEnqueuedTrials) {
  const SweepSpec all = Spec(4, 4, {.name = "fifo"});
  const Recording recording = RecordAs(Spec(2, 4, {.name = "fifo"}), all, Written(kFour));
  EXPECT_THAT(Steps(Under(recording, {.name = "fifo"}).if_worst), ElementsAre(4, 4, 4, 4));
  SweepSpec fewer = recording.spec();
  fewer.stop.max_trials = 1;
  const auto replay = ReplayUnder(recording, fewer, cli::AllAlgorithms(), 1);
  ASSERT_TRUE(replay.ok()) << replay.error().message;
  EXPECT_THAT(Steps(replay->if_worst), ElementsAre(4, 0, 0, 0));
}

class WithGradNorm final : public Written {
 public:
  WithGradNorm() : Written(kFour) {}
  Metrics MetricsAt(TrialNumber, Step) const override { return {{"grad_norm", 1}, {"more", 2}}; }
};

TEST(Replay, FailsNoUnknownTrialByALimitOnAnotherMetric) {
  const SweepSpec spec = Spec(4, 4, Asha());
  SweepSpec limited = spec;
  limited.scheduler = {.name = "fifo"};
  limited.stop.thresholds = {{.metric = "grad_norm", .at_least = 1e4}};
  Recording recording(spec, limited.ReportedMetrics());
  ASSERT_TRUE(
      Simulate(spec, cli::AllAlgorithms(), WithGradNorm(), {.slots = 1}, [&](const Event& event) {
        recording.Observe(event);
      }).ok());
  const auto replay = ReplayUnder(recording, limited, cli::AllAlgorithms(), 1);
  ASSERT_TRUE(replay.ok()) << replay.error().message;
  EXPECT_TRUE(replay->IsUnknown(TrialNumber(2)));
  EXPECT_EQ(replay->if_worst.summary.Count(TrialState::kFailed), 0);
  EXPECT_EQ(replay->if_best.summary.Count(TrialState::kFailed), 0);
  EXPECT_THAT(Steps(replay->if_worst), ElementsAre(4, 4, 4, 4));
}

TEST(Replay, RefusesALimitOnAMetricThatIsNotRecorded) {
  const Recording recording = Record(Spec(4, 4, Asha()), Written(kFour));
  SweepSpec limited = recording.spec();
  limited.stop.thresholds = {{.metric = "grad_norm", .at_least = 1e4}};
  EXPECT_THAT(ReplayUnder(recording, limited, cli::AllAlgorithms(), 1).error().message,
              HasSubstr("stop: grad_norm "));
}

TEST(Recording, KeepsOnlyRequestedMetrics) {
  const Recording recording = Record(Spec(1, 4, {.name = "fifo"}), WithGradNorm());
  EXPECT_THAT(recording.trials()[0].curve.at(Step(1)).metrics, ElementsAre(Pair("loss", 0.9)));
}

TEST(Timeline, LimitsSpansToTheMaximum) {
  EXPECT_EQ(ToMicroseconds(Seconds(1e300)), ToMicroseconds(Seconds(kMaxSeconds)));
  EXPECT_EQ(ToMicroseconds(Seconds(std::nan(""))), 0);
  EXPECT_EQ(ToMicroseconds(Seconds(1.5)), 1'500'000);
}

}  // namespace
}  // namespace attune::simulate
