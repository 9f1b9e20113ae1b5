#include <limits>

#include "core/state/retention.h"
#include "tests/support/mentions.h"
#include "tests/unit/core/brain_harness.h"

// Sweeps with several objectives or with constraints.
namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class Objectives : public BrainTest {
 protected:
  // A large score and a small cost are good.
  static SweepSpec TwoObjectives(StopPolicy stop = {}) {
    SweepSpec spec = testing::ToySpec();
    spec.scheduler.name = "cloner";  // stops no trial with a good score
    spec.objectives.push_back(Minimise("cost"));
    spec.max_step = Step(100);
    spec.stop = std::move(stop);
    return spec;
  }
  static SweepSpec WithConstraint(StopPolicy stop = {}) {
    SweepSpec spec = TwoObjectives(std::move(stop));
    spec.objectives.pop_back();
    spec.constraints = {{.metric = "cost", .max = 20}};
    return spec;
  }
  std::vector<Event> ReportBoth(uint32_t number, int64_t step, double score, double cost,
                                bool waits = false) {
    return Tell(number,
                TrialReported{
                    .report = {Step(step), {{"score", score}, {"cost", cost}}, Seconds(0), waits}});
  }
  std::vector<Event> Train(uint32_t number, int64_t step, double score, double cost) {
    Save(number, step);
    return ReportBoth(number, step, score, cost);
  }
  std::vector<uint32_t> Front() const {
    std::vector<uint32_t> trials;
    for (const Best& report : sweep().front) trials.push_back(report.trial.value);
    return trials;
  }
  std::vector<int64_t> Kept(uint32_t number) const {
    std::vector<int64_t> steps;
    for (const KeptCheckpoint& kept : trial(number).checkpoints)
      steps.push_back(kept.ref.step.value);
    return steps;
  }
};

TEST_F(Objectives, TheFrontHoldsTheReportsThatAreNotDominated) {
  Create(TwoObjectives());
  ReportBoth(0, 1, 0.8, 20);
  ReportBoth(1, 1, 0.9, 30);
  EXPECT_THAT(Front(), ElementsAre(0, 1));
  ReportBoth(0, 2, 0.9, 20);
  EXPECT_THAT(Front(), ElementsAre(0));
  ReportBoth(1, 2, kNaN, 1);  // NaN is the worst value, even at the lowest cost
  EXPECT_THAT(Front(), ElementsAre(0));
}

TEST_F(Objectives, AReportThatViolatesAConstraintIsNotTheBest) {
  Create(WithConstraint());
  ReportBoth(0, 1, 0.9, 20.5);
  EXPECT_THAT(Front(), IsEmpty());
  ReportBoth(0, 2, 0.3, 20);
  ReportBoth(1, 1, 0.8, kNaN);
  ASSERT_THAT(Front(), ElementsAre(0));
  EXPECT_THAT(sweep().front[0].values, ElementsAre(0.3));
}

TEST_F(Objectives, AMissingMetricFailsTheTrialAndIsNamed) {
  Create(TwoObjectives());
  const auto events = Report(0, 1, 0.5);
  ASSERT_NE(Find<TrialEnded>(events), nullptr);
  EXPECT_EQ(Find<TrialEnded>(events)->state, TrialState::kFailed);
  EXPECT_THAT(Find<TrialEnded>(events)->reason, testing::Mentions("step 1", "cost", "score"));
}

TEST_F(Objectives, AMissingMetricOfAConstraintFailsTheTrialAndIsNamed) {
  Create(WithConstraint());
  EXPECT_THAT(Find<TrialEnded>(Report(0, 1, 0.5))->reason, testing::Mentions("cost"));
}

TEST_F(Objectives, AReportWhoseTimeDiffersFromItsStepFailsTheTrial) {
  SweepSpec spec = TwoObjectives();
  spec.time_attr = "cost";
  Create(spec);
  ReportBoth(0, 7, 0.3, 7.9);
  EXPECT_EQ(sweep().trials.at(TrialNumber(0)).last_step, Step(7));
  EXPECT_THAT(Find<TrialEnded>(ReportBoth(0, 8, 0.3, 9))->reason,
              testing::Mentions("step 8", "cost", "9"));
}

TEST_F(Objectives, CheckpointsOfTheFrontAreKept) {
  SweepSpec spec = TwoObjectives();
  spec.checkpoint = {.keep_last = 1, .keep_best = 0};
  Create(spec);
  Train(0, 1, 0.8, 20);
  Train(0, 2, 0.9, 30);
  Train(0, 3, 0.7, 40);
  Train(0, 4, 0.6, 50);
  EXPECT_THAT(Kept(0), ElementsAre(1, 2, 4));
  Train(0, 5, 0.9, 20);  // dominates both
  EXPECT_THAT(Kept(0), ElementsAre(5));
}

TEST_F(Objectives, TheLeastDominatedCheckpointsOfATrialAreKept) {
  SweepSpec spec = TwoObjectives();
  spec.checkpoint = {.keep_last = 1, .keep_best = 2};
  Create(spec);
  ReportBoth(1, 1, 5, 0);  // trial 1 has the only report on the front
  Train(0, 1, 0.8, 20);
  Train(0, 2, 0.9, 30);
  Train(0, 3, 0.7, 40);
  Train(0, 4, 0.6, 50);
  EXPECT_THAT(Kept(0), ElementsAre(1, 2, 4));
  Train(0, 5, 0.95, 60);
  Train(0, 6, 0.1, 70);
  EXPECT_THAT(Kept(0), ElementsAre(2, 5, 6));  // ties are broken by score
}

TEST_F(Objectives, AnInfeasibleCheckpointIsNotAmongTheBestOfItsTrial) {
  SweepSpec spec = WithConstraint();
  spec.checkpoint = {.keep_last = 1, .keep_best = 1};
  Create(spec);
  Train(1, 1, 5, 1);
  Train(0, 1, 0.5, 10);
  Train(0, 2, 0.9, 30);
  Train(0, 3, 0.4, 10);
  EXPECT_THAT(Kept(0), ElementsAre(1, 3));
}

TEST_F(Objectives, AllTargetsMustBeReachedByOneReport) {
  Create(TwoObjectives({.targets = {0.9, 10}}));
  EXPECT_EQ(Find<SweepStopping>(ReportBoth(0, 1, 0.95, 30)), nullptr);
  EXPECT_EQ(Find<SweepStopping>(ReportBoth(1, 1, 0.5, 5)), nullptr);
  const auto events = ReportBoth(1, 2, 0.9, 10);
  ASSERT_NE(Find<SweepStopping>(events), nullptr);
  EXPECT_THAT(Find<SweepStopping>(events)->reason,
              testing::Mentions("trial 1", "score 0.9", "cost 10", "step 2"));
}

TEST_F(Objectives, ObjectivesWithoutATargetAreIgnored) {
  Create(TwoObjectives({.targets = {std::nullopt, 10}}));
  EXPECT_EQ(Find<SweepStopping>(ReportBoth(0, 1, 0.95, 30)), nullptr);
  EXPECT_NE(Find<SweepStopping>(ReportBoth(0, 2, 0, 9)), nullptr);
}

TEST_F(Objectives, AnInfeasibleReportReachesNoTarget) {
  Create(WithConstraint({.targets = {0.9}}));
  EXPECT_EQ(Find<SweepStopping>(ReportBoth(0, 1, 0.95, 30)), nullptr);
  EXPECT_NE(Find<SweepStopping>(ReportBoth(0, 2, 0.95, 20)), nullptr);
}

TEST_F(Objectives, PatienceCountsTrialsThatDidNotChangeTheFront) {
  Create(TwoObjectives({.patience = 2}));
  ReportBoth(0, 1, 0.9, 30);
  ReportBoth(1, 1, 0.8, 20);
  Finish(0);
  Finish(1);  // both are on the front
  EXPECT_EQ(sweep().since_best, 0);
  ReportBoth(2, 1, 0.7, 40);
  Finish(2);
  EXPECT_EQ(sweep().since_best, 1);
  ReportBoth(3, 1, 0.1, 1);  // worse in score and better in cost
  EXPECT_EQ(sweep().since_best, 0);
  Finish(3);
  for (const uint32_t number : {4, 5}) {
    ReportBoth(number, 1, 0.05, 40);
    Finish(number);
  }
  EXPECT_TRUE(sweep().stopping_as);
  EXPECT_THAT(sweep().reason, testing::Mentions("stop.patience"));
}

TEST_F(Objectives, ATrialsPatienceEndsWhenNoneOfItsMetricsImproves) {
  Create(TwoObjectives({.trial_patience = 2}));
  ReportBoth(0, 1, 0.5, 30);
  ReportBoth(0, 2, 0.4, 29);
  ReportBoth(0, 3, 0.6, 31);
  ReportBoth(0, 4, 0.6, 31);
  const auto events = ReportBoth(0, 5, 0.6, 31);
  ASSERT_NE(Find<TrialYielding>(events), nullptr);
  EXPECT_THAT(Find<TrialYielding>(events)->verdict.reason.text,
              testing::Mentions("score", "cost", "2 reports", "0.6"));
}

TEST_F(Objectives, ATrialsPatienceIgnoresConstraints) {
  Create(WithConstraint({.trial_patience = 2}));
  for (int64_t step = 1; step <= 9; ++step)  // the score improves while the report stays infeasible
    EXPECT_EQ(Find<TrialYielding>(ReportBoth(0, step, static_cast<double>(step), 99)), nullptr);
}

TEST_F(Objectives, ASnapshotKeepsTheFront) {
  Create(TwoObjectives({.targets = {0.99, 1}}));
  Train(0, 1, 0.8, 20);
  Train(1, 1, 0.9, 30);
  State loaded(*brain.state().algorithms);
  const std::string saved = SaveState(brain.state());
  ASSERT_TRUE(LoadState(saved, loaded).ok());
  EXPECT_EQ(loaded.Find(id())->front, sweep().front);
  EXPECT_EQ(SaveState(loaded), saved);
}

}  // namespace
}  // namespace attune
