#include "schedulers/asha.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "tests/support/golden.h"
#include "tests/unit/schedulers/harness.h"

namespace attune::schedulers {
namespace {

using ::testing::ElementsAre;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Asha Halving(int64_t max = 8) {
  return Asha(Maximise("accuracy"),
              Ladder({.min = Step(1), .max = Step(max), .reduction_factor = 2}));
}

std::vector<int64_t> RungsOf(int64_t min, int64_t max, int64_t reduction_factor) {
  return SchedulerHarness(Asha(Maximise("m"), Ladder({Step(min), Step(max), reduction_factor})))
      .Rungs();
}

TEST(Asha, RungsGrowByTheReductionFactorUpToMax) {
  EXPECT_THAT(RungsOf(1, 27, 3), ElementsAre(1, 3, 9, 27));
  EXPECT_THAT(RungsOf(2, 100, 4), ElementsAre(2, 8, 32, 100));
}

// Logarithms in floating point would give one rung too few.
TEST(Asha, RungsAreExactAtPowersOfTheReductionFactor) {
  EXPECT_THAT(RungsOf(1, 1000, 10), ElementsAre(1, 10, 100, 1000));
  EXPECT_THAT(RungsOf(1, 243, 3), ElementsAre(1, 3, 9, 27, 81, 243));
  EXPECT_THAT(RungsOf(5, 6, 3), ElementsAre(5, 6));
}

TEST(Asha, RungsNearTheLargestStepDoNotOverflow) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(RungsOf(kMax / 2, kMax, 2), ElementsAre(kMax / 2, kMax - 1, kMax));
  EXPECT_THAT(RungsOf(1, kMax, kMax / 2), ElementsAre(1, kMax / 2, kMax));
}

TEST(Asha, StopsNoTrialBeforeEnoughReachedTheRung) {
  SchedulerHarness sweep(Asha(Maximise("accuracy"), Ladder({Step(1), Step(64), 4})));

  EXPECT_THAT(sweep.Report({0, 1}, 0.9).verdict(), Continues());
  EXPECT_THAT(sweep.Report({1, 1}, 0.1).verdict(), Continues());
  EXPECT_THAT(sweep.Report({2, 1}, kNaN).verdict(), Continues());
  EXPECT_THAT(sweep.Report({3, 1}, 0.8).verdict(), Stops("asha"));
}

TEST(Asha, ContinuesTheBestShare) {
  SchedulerHarness sweep(Halving());

  EXPECT_THAT(sweep.Report({0, 1}, 0.5).verdict(), Continues());
  EXPECT_THAT(sweep.Report({1, 1}, 0.6).verdict(), Continues());     // first of two
  EXPECT_THAT(sweep.Report({2, 1}, 0.55).verdict(), Stops("asha"));  // second of three
  EXPECT_THAT(sweep.Report({3, 1}, 0.58).verdict(), Continues());    // second of four
  EXPECT_THAT(sweep.Report({4, 1}, 0.56).verdict(), Stops("asha"));  // third of five
}

// Nine parallel trials with rungs 1, 3, 9 and 27, of which a third continues; computed by hand. It
// is the figure of docs/reference/schedulers.md: 9 trials reach the first rung, 3 the second, 1 the
// third.
TEST(Asha, FollowsTheFigure) {
  SchedulerHarness sweep(Asha(Maximise("accuracy"), Ladder({Step(1), Step(27), 3})));

  // At rung 1, in the order of arrival: the best of 3 continues, two of 6, and three of 9.
  EXPECT_THAT(sweep.Report({0, 1}, 0.9).verdict(), Continues());  // no trial is stopped before 3
  EXPECT_THAT(sweep.Report({1, 1}, 0.8).verdict(), Continues());
  EXPECT_THAT(sweep.Report({2, 1}, 0.3).verdict(), Stops("asha"));
  EXPECT_THAT(sweep.Report({3, 1}, 0.5).verdict(), Stops("asha"));
  EXPECT_THAT(sweep.Report({4, 1}, 0.7).verdict(), Stops("asha"));  // of 5 still one
  EXPECT_THAT(sweep.Report({5, 1}, 0.6).verdict(), Stops("asha"));  // fourth; of 6 two
  EXPECT_THAT(sweep.Report({6, 1}, 0.4).verdict(), Stops("asha"));
  EXPECT_THAT(sweep.Report({7, 1}, 0.2).verdict(), Stops("asha"));
  EXPECT_THAT(sweep.Report({8, 1}, 0.85).verdict(), Continues());  // second of nine
  EXPECT_EQ(sweep.verdict().reason.cutoff, 0.8);
  // At rung 3: 0.92 0.86 0.84.
  EXPECT_THAT(sweep.Report({1, 3}, 0.84).verdict(), Continues());
  EXPECT_THAT(sweep.Report({8, 3}, 0.86).verdict(), Continues());
  EXPECT_THAT(sweep.Report({0, 3}, 0.92).verdict(), Continues());
  EXPECT_EQ(sweep.verdict().reason.cutoff, 0.92);
  EXPECT_THAT(sweep.Report({0, 9}, 0.95).verdict(), Continues());
  EXPECT_THAT(sweep.Report({0, 27}, 0.97).verdict(), Continues());
  EXPECT_EQ(sweep.verdict().reason.rung, Step(27));
  EXPECT_EQ(sweep.verdict().reason.rank, 1);
  EXPECT_EQ(sweep.verdict().reason.peers, 1);
}

TEST(Asha, SmallerIsBetterWhenMinimising) {
  SchedulerHarness sweep(Asha(Minimise("loss"), Ladder({Step(1), Step(8), 2})), "loss");

  sweep.Report({0, 1}, 0.5);
  EXPECT_THAT(sweep.Report({1, 1}, 0.6).verdict(), Stops("asha"));
  EXPECT_THAT(sweep.Report({2, 1}, 0.4).verdict(), Continues());
}

TEST(Asha, RungsDoNotMix) {
  SchedulerHarness sweep(Halving());

  sweep.Report({0, 1}, 0.5).Report({1, 1}, 0.6).Report({1, 2}, 0.1);
  EXPECT_THAT(sweep.verdict(), Continues());  // alone at rung 2
  EXPECT_EQ(sweep.verdict().reason.peers, 1);
}

TEST(Asha, NanCountsAsWorstAndIsRecordedOnce) {
  SchedulerHarness sweep(Halving());

  sweep.Report({0, 1}, 0.5).Report({1, 1}, kNaN);
  EXPECT_THAT(sweep.verdict(), Stops("asha"));
  EXPECT_EQ(sweep.verdict().reason.rank, 2);

  sweep.Report({1, 1}, kNaN);  // the same report again
  EXPECT_EQ(sweep.Report({2, 1}, -1e300).verdict().reason.peers, 3);
  EXPECT_EQ(sweep.verdict().reason.rank, 2);
}

TEST(Asha, OneNanTrialStopsOnlyItself) {
  SchedulerHarness sweep(Halving());

  sweep.Report({0, 1}, kNaN);
  EXPECT_THAT(sweep.Report({1, 1}, 0.1).verdict(), Continues());
  EXPECT_THAT(sweep.Report({2, 1}, 0.2).verdict(), Continues());
}

TEST(Asha, InfinitiesOfEitherSignAreTheWorstValue) {
  SchedulerHarness sweep(Halving());

  sweep.Report({0, 1}, -1e300);
  EXPECT_THAT(sweep.Report({1, 1}, kInf).verdict(), Stops("asha"));
  EXPECT_THAT(sweep.Report({2, 1}, -kInf).verdict(), Stops("asha"));
}

TEST(Asha, TreatsAMissingMetricAsWorst) {
  SchedulerHarness sweep(Halving());

  sweep.Report({0, 1}, 0.1).Report({1, 1}, Metrics{{"acuracy", 0.9}});
  EXPECT_THAT(sweep.verdict(), Stops("asha"));
  EXPECT_EQ(sweep.verdict().reason.rank, 2);
  EXPECT_EQ(sweep.verdict().reason.cutoff, 0.1);
}

TEST(Asha, RanksTheEarlierOfEqualValuesFirst) {
  SchedulerHarness sweep(Halving());

  EXPECT_EQ(sweep.Report({5, 1}, 0.5).verdict().reason.rank, 1);
  EXPECT_EQ(sweep.Report({3, 1}, 0.5).verdict().reason.rank, 2);
  EXPECT_EQ(sweep.Report({4, 1}, 0.5).verdict().reason.rank, 3);
}

TEST(Asha, ContinuesSomeTrialsWithEqualValues) {
  SchedulerHarness sweep(Halving());
  int going_on = 0;
  for (uint32_t trial = 0; trial < 8; ++trial) {
    going_on += sweep.Report({trial, 1}, 0.5).verdict().kind == VerdictKind::kContinue;
  }
  EXPECT_EQ(going_on, 1);
}

TEST(Asha, ALateReportIsRecordedAtTheRungItHasPassed) {
  SchedulerHarness sweep(Halving());

  const Reason& reason = sweep.Report({0, 3}, 0.5).verdict().reason;
  EXPECT_EQ(reason.rung, Step(2));
  EXPECT_EQ(reason.step, Step(3));
}

// A trial that reports every five steps. Step 5 skips a rung, and step 15 must not fill it.
TEST(Asha, SkippedRungsAreNotFilledLater) {
  SchedulerHarness sweep(Halving(64));

  EXPECT_EQ(sweep.Report({0, 5}, 0.5).verdict().reason.rung, Step(4));
  EXPECT_EQ(sweep.Report({0, 10}, 0.6).verdict().reason.rung, Step(8));
  EXPECT_EQ(sweep.Report({0, 15}, 0.7).verdict().reason.rung, Step(0));
  EXPECT_EQ(sweep.Report({1, 1}, 0.1).verdict().reason.peers, 1);
  EXPECT_EQ(sweep.Report({1, 2}, 0.1).verdict().reason.peers, 1);
}

TEST(Asha, ARepeatedOrEarlierStepIsNeitherJudgedNorRecorded) {
  SchedulerHarness sweep(Halving());
  sweep.Report({0, 1}, 0.9).Report({0, 2}, 0.9);

  for (const int64_t step : {1, 2}) {
    EXPECT_THAT(sweep.Report({0, step}, 0.0).verdict(), Continues());
    EXPECT_EQ(sweep.verdict().reason.rung, Step(0));
  }
  EXPECT_EQ(sweep.Report({1, 1}, 0.95).verdict().reason.peers, 2);
  EXPECT_EQ(sweep.Report({1, 2}, 0.95).verdict().reason.peers, 2);
}

TEST(Asha, ARetriedTrialIsJudgedNextAtTheRungItHasNotReached) {
  SchedulerHarness sweep(Halving());
  sweep.Report({0, 1}, 0.9).Report({0, 2}, 0.9);

  EXPECT_EQ(sweep.NextMilestone({0, 0}), 4);  // from scratch
  EXPECT_EQ(sweep.NextMilestone({0, 1}), 4);  // from the checkpoint of step 1
}

TEST(Asha, MilestonesAreTheRungsAheadOfATrial) {
  const SchedulerHarness sweep(Halving());

  EXPECT_EQ(sweep.NextMilestone({0, 0}), 1);
  EXPECT_EQ(sweep.NextMilestone({0, 1}), 2);
  EXPECT_EQ(sweep.NextMilestone({0, 5}), 8);
  EXPECT_EQ(sweep.NextMilestone({0, 8}), 0);
}

TEST(Asha, StopsNoTrialAtTheLastRung) {
  SchedulerHarness sweep(Halving());
  sweep.Report({0, 8}, 0.9).Report({1, 8}, 0.8).Report({2, 8}, 0.1);

  EXPECT_THAT(sweep.verdict(), Continues());
  EXPECT_EQ(sweep.verdict().reason.rung, Step(8));
  EXPECT_EQ(sweep.verdict().reason.rank, 3);
}

TEST(Asha, TheReasonHasTheNumbers) {
  SchedulerHarness sweep(Halving());
  sweep.Report({0, 2}, 0.9).Report({1, 2}, 0.7).Report({2, 2}, 0.8).Report({3, 3}, 0.75);

  const Reason& reason = sweep.verdict().reason;
  EXPECT_EQ(reason.rule, "asha");
  EXPECT_EQ(reason.step, Step(3));
  EXPECT_EQ(reason.rung, Step(2));
  EXPECT_EQ(reason.value, 0.75);
  EXPECT_EQ(reason.rank, 3);
  EXPECT_EQ(reason.peers, 4);
  EXPECT_EQ(reason.cutoff, 0.8);
}

TEST(Asha, CutoffIsTheWorstContinuingValueIncludingTheNewOne) {
  SchedulerHarness sweep(Halving());
  sweep.Report({0, 1}, 0.1).Report({1, 1}, 0.2).Report({2, 1}, 0.3);

  EXPECT_EQ(sweep.Report({3, 1}, 0.25).verdict().reason.cutoff, 0.25);  // second of four
  sweep.Report({4, 1}, 0.0);
  EXPECT_EQ(sweep.Report({5, 1}, 0.9).verdict().reason.cutoff, 0.25);   // three of six continue
  EXPECT_EQ(sweep.Report({6, 1}, 0.15).verdict().reason.cutoff, 0.25);  // three of seven
}

TEST(Asha, ExplainsEachVerdict) {
  SchedulerHarness sweep(Halving());
  std::string texts;
  const auto add = [&] {
    EXPECT_FALSE(sweep.text().empty());
    texts += sweep.text() + "\n";
  };

  sweep.Report({0, 1}, 2.0 / 3);  // the first at its rung
  add();
  sweep.Report({1, 1}, 0.9);
  EXPECT_EQ(sweep.verdict().reason.rank, 1);
  add();
  sweep.Report({1, 1}, 0.9);  // before the next rung
  EXPECT_EQ(sweep.verdict().reason.rung, Step(0));
  add();
  sweep.Report({2, 1}, 0.1);
  EXPECT_THAT(sweep.verdict(), Stops("asha"));
  add();
  sweep.Report({3, 1}, Metrics{{"acuracy", 0.9}});  // without the metric
  add();
  sweep.Report({1, 8}, 0.9);
  add();
  sweep.Report({1, 9}, 0.9);  // after the last rung
  add();
  testing::ExpectGolden("schedulers/asha", texts);
}

// Compares with the definition: counts the trials at the rung that are at least as good.
TEST(Asha, AgreesWithCountingOverAThousandReports) {
  SchedulerHarness sweep(Asha(Maximise("accuracy"), Ladder({Step(1), Step(64), 3})));
  RandomStream random(1, TrialNumber(0), "test");
  std::vector<double> seen;
  for (uint32_t trial = 0; trial < 1'000; ++trial) {
    const double value = static_cast<double>(random.Integer(0, 50));
    const Verdict& verdict = sweep.Report({trial, 1}, value).verdict();

    const auto rank =
        1 + std::count_if(seen.begin(), seen.end(), [&](double other) { return other >= value; });
    seen.push_back(value);
    const int64_t going_on = std::ssize(seen) / 3;
    ASSERT_EQ(verdict.reason.rank, rank);
    ASSERT_EQ(verdict.kind == VerdictKind::kStop, going_on > 0 && rank > going_on);
    if (going_on == 0) continue;
    std::vector<double> sorted = seen;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    ASSERT_EQ(verdict.reason.cutoff, sorted[static_cast<size_t>(going_on - 1)]);
  }
}

SweepSpec Spec(int64_t min, int64_t max) {
  return {.objectives = {Maximise("accuracy")},
          .scheduler = {.name = "asha",
                        .options = {{"min", min},
                                    {"mode", std::string("stop")},
                                    {"reduction_factor", int64_t{4}},
                                    {"brackets", int64_t{1}}}},
          .max_step = Step(max)};
}

TEST(Asha, IsMadeFromTheSweepFile) {
  const auto made = AshaEntry().make(Spec(1, 20));
  EXPECT_THAT((*made)->Rungs(), ElementsAre(Step(1), Step(4), Step(16), Step(20)));
}

TEST(Asha, RequiresMax) {
  const auto made = AshaEntry().make(Spec(1, 0));
  EXPECT_EQ(made.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(made.error().message, ::testing::StartsWith("scheduler.max: "));
}

TEST(Asha, RequiresMinBelowMax) {
  const auto made = AshaEntry().make(Spec(9, 9));
  EXPECT_EQ(made.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(made.error().message, ::testing::StartsWith("scheduler.min: 9 "));
}

}  // namespace
}  // namespace attune::schedulers
