#include <limits>

#include "core/state/snapshot.h"
#include "core/state/stoppers.h"
#include "tests/support/mentions.h"
#include "tests/unit/core/brain_harness.h"

namespace attune {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// stop.plateau and stop.threshold: every report waits for its verdict.
class TrialStoppers : public BrainTest {
 protected:
  static SweepSpec Spec(StopPolicy stop) {
    SweepSpec spec = testing::ToySpec();
    spec.scheduler.name = "cloner";  // stops no trial with a good score
    spec.max_step = Step(100);
    spec.stop = std::move(stop);
    return spec;
  }
  static Plateau OnScore(Plateau plateau) {
    plateau.metric = Maximise("score");
    return plateau;
  }
  // The verdict on a report of trial 0.
  Verdict Judge(int64_t step, double score) {
    const auto events = Report(0, step, score, /*waits=*/true);
    const auto* decided = Find<TrialDecided>(events);
    return decided == nullptr ? Verdict{} : decided->verdict;
  }
  // The step at which a trial with these values at steps 1, 2, … is stopped; 0: never.
  int64_t StoppedAt(const std::vector<double>& values) {
    int64_t step = 0;
    for (const double value : values) {
      last = Judge(++step, value);
      if (last.kind == VerdictKind::kStop) return step;
    }
    return 0;
  }
  Verdict last;  // of StoppedAt
};

TEST_F(TrialStoppers, AGainBelowMinDeltaDoesNotCount) {
  Create(Spec({.plateau = OnScore({.patience = 3, .min_delta = 0.1})}));
  EXPECT_EQ(StoppedAt({0.5, 0.61, 0.64, 0.67, 0.7, 0.9}), 5);
  EXPECT_EQ(last.reason.rule, "plateau");
  EXPECT_EQ(last.reason.value, 0.7);
  EXPECT_EQ(last.reason.cutoff, 0.61);
  EXPECT_THAT(last.reason.text, testing::Mentions("step 5", "score", "0.1", "3 reports", "0.61",
                                                  "step 2", "stop.plateau"));
}

TEST_F(TrialStoppers, SmallGainsAddUp) {
  Create(Spec({.plateau = OnScore({.patience = 3, .min_delta = 0.1})}));
  EXPECT_EQ(StoppedAt({0.5, 0.56, 0.62, 0.68, 0.74, 0.8, 0.86}), 0);
}

TEST_F(TrialStoppers, NoTrialStopsBeforeTheGracePeriod) {
  Create(Spec({.plateau = OnScore({.patience = 2, .grace_period = Step(6)})}));
  EXPECT_EQ(StoppedAt({0.5, 0.5, 0.5, 0.5, 0.5, 0.5}), 6);
}

TEST_F(TrialStoppers, NanIsNotAGain) {
  Create(Spec({.plateau = OnScore({.patience = 2})}));
  EXPECT_EQ(StoppedAt({kNaN, kNaN}), 2);
  EXPECT_THAT(last.reason.text, testing::Mentions("2 reports", "stop.plateau"));
}

TEST_F(TrialStoppers, ImprovingValuesWithASmallDeviationAreAPlateau) {
  Create(Spec({.plateau = OnScore({.patience = 4, .std = 0.02})}));
  EXPECT_EQ(StoppedAt({0.1, 0.3, 0.5, 0.51, 0.52, 0.53, 0.9}), 6);
  EXPECT_THAT(last.reason.text, testing::Mentions("step 6", "4", "score", "0.0111803", "0.515",
                                                  "stop.plateau.std", "0.02"));
}

TEST_F(TrialStoppers, NonFiniteValuesHaveNoDeviation) {
  Create(Spec({.plateau = OnScore({.patience = 2, .std = 1})}));
  EXPECT_EQ(StoppedAt({kInf, kInf, kNaN, 0.5, kNaN, 0.5, 0.5}), 7);
}

TEST_F(TrialStoppers, AThresholdIsReachedFromEitherSide) {
  Create(Spec({.thresholds = {{.metric = "score", .at_least = 0.9, .at_most = 0.1}}}));
  EXPECT_EQ(StoppedAt({0.5, 0.2, 0.1}), 3);
  EXPECT_EQ(last.reason.rule, "threshold");
  EXPECT_EQ(last.reason.cutoff, 0.1);
  EXPECT_THAT(last.reason.text, testing::Mentions("step 3", "score 0.1", "stop.threshold"));
  EXPECT_THAT(Find<TrialDecided>(Report(1, 1, 0.95, true))->verdict.reason.text,
              testing::Mentions("score 0.95", "0.9"));
}

TEST_F(TrialStoppers, InfinityReachesAThresholdAndNanDoesNot) {
  Create(Spec({.thresholds = {{.metric = "score", .at_least = 0.9, .at_most = 0.1}}}));
  EXPECT_EQ(StoppedAt({kNaN, 0.5, kInf}), 3);
}

TEST_F(TrialStoppers, AThresholdWaitsForItsGracePeriod) {
  Create(Spec({.thresholds = {{.metric = "score", .at_most = 0.1, .grace_period = Step(3)}}}));
  EXPECT_EQ(StoppedAt({0.05, 0.05, 0.05}), 3);
}

TEST_F(TrialStoppers, AReportWithoutAWaitMakesTheTrialYield) {
  Create(Spec({.thresholds = {{.metric = "score", .at_least = 0.9}}}));
  Report(0, 1, 0.95);
  ASSERT_TRUE(trial(0).yield_verdict);
  EXPECT_EQ(Judge(2, 0.5).kind, VerdictKind::kStop) << "the earlier report reached the threshold";
  EXPECT_EQ(StateOf(0), TrialState::kStopped);
}

TEST_F(TrialStoppers, AnExtendedTrialIsExempt) {
  SweepSpec spec = Spec({.max_trials = 1, .thresholds = {{.metric = "score", .at_least = 0.9}}});
  Create(spec);
  EXPECT_EQ(StoppedAt({0.95}), 1);
  Finish(0);
  Do(ReopenTrial{.record = RecordOf(0, Step(1)), .until = Step(3)});
  EXPECT_EQ(Judge(2, 0.97).kind, VerdictKind::kContinue);
}

TEST_F(TrialStoppers, ARetryResetsThePatience) {
  Create(Spec({.max_trials = 1, .plateau = OnScore({.patience = 2})}));
  EXPECT_EQ(StoppedAt({0.5, 0.5, 0.5}), 3);
  Finish(0);
  Do(ReopenTrial{RecordOf(0, Step(3))});
  EXPECT_EQ(Judge(4, 0.5).kind, VerdictKind::kContinue) << "the first value after the retry";
  EXPECT_EQ(Judge(5, 0.5).kind, VerdictKind::kContinue);
  EXPECT_EQ(Judge(6, 0.5).kind, VerdictKind::kStop);
}

TEST_F(TrialStoppers, AReportWithoutTheMetricOfAStopperFailsTheTrial) {
  Create(Spec({.thresholds = {{.metric = "recall", .at_least = 0.9}}}));
  Report(0, 1, 0.5);
  EXPECT_EQ(StateOf(0), TrialState::kFailed);
  EXPECT_THAT(sweep().reason, testing::Mentions("recall", "score"));
}

TEST_F(TrialStoppers, AnEditReplacesThemAndResetsTheirCounts) {
  Create(Spec({.plateau = OnScore({.patience = 3})}));
  StoppedAt({0.5, 0.4, 0.4});
  SweepSpec spec = sweep().spec;
  spec.stop.plateau->patience = 2;
  spec.stop.thresholds = {{.metric = "score", .at_most = 0.1}};
  const auto events = Do(EditSweep{.sweep = id(), .spec = spec, .seen = brain.state().last_seq});
  EXPECT_THAT(
      Find<SweepEdited>(events)->changes,
      ::testing::ElementsAre(
          "stop.plateau {metric score, mode max, patience 2, min_delta 0.0, grace_period 1} "
          "(was {metric score, mode max, patience 3, min_delta 0.0, grace_period 1})",
          "stop.threshold [{score, at_most 0.1, grace_period 1}] (was none)"));
  EXPECT_EQ(Judge(4, 0.4).kind, VerdictKind::kContinue);
  EXPECT_EQ(Judge(5, 0.4).kind, VerdictKind::kContinue);
  EXPECT_EQ(Judge(6, 0.4).kind, VerdictKind::kStop);

  spec.stop.thresholds = {{.metric = "recall", .at_least = 0.9}};
  EXPECT_THAT(
      RefusalOf(EditSweep{.sweep = id(), .spec = spec, .seen = brain.state().last_seq}).message,
      testing::Mentions("recall"));
}

TEST_F(TrialStoppers, ARestartOfTheServerKeepsTheirCounts) {
  for (const auto& plateau : {Plateau{.patience = 2}, Plateau{.patience = 3, .std = 0.0}}) {
    Create(Spec({.plateau = OnScore(plateau)}));
    EXPECT_EQ(StoppedAt({0.5, 0.5}), 0);
    Brain again{algorithms, [](const std::string&) { return true; }};
    const std::string bytes = SaveState(brain.state());
    ASSERT_TRUE(again.Load(bytes).ok());
    EXPECT_EQ(SaveState(again.state()), bytes);
    const Attempt& live = *trial(0).live;
    const TrialReported third{live.id, {Step(3), {{"score", 0.5}}, Seconds(0), /*waits=*/true}};
    const auto events = again.Execute(RecordFact{live.epoch, third}, Tick());
    ASSERT_TRUE(events.ok());
    ASSERT_NE(Find<TrialDecided>(*events), nullptr);
    EXPECT_EQ(Find<TrialDecided>(*events)->verdict.kind, VerdictKind::kStop);
    Do(KillSweep{id()});
    for (const uint32_t number : {0, 1}) Finish(number);
  }
}

}  // namespace
}  // namespace attune
