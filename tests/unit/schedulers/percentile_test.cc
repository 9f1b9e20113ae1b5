#include "schedulers/percentile.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "tests/support/golden.h"
#include "tests/unit/schedulers/harness.h"

namespace attune::schedulers {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

PercentileStopping Median(PercentileStopping::Options options = {}) {
  return PercentileStopping(Maximise("accuracy"), options);
}

PercentileStopping Percentile(double percentile, int64_t min_samples = 3) {
  return PercentileStopping(Maximise("accuracy"), {.form = PercentileStopping::Form::kPercentile,
                                                   .min_samples = min_samples,
                                                   .percentile = percentile});
}

// Running means, worked out by hand:
//   trial 0: 0.1 0.2 0.6 → 0.1 0.15 0.3
//   trial 1: 0.3 0.5 0.4 → 0.3 0.40 0.4
//   trial 2: 0.5 0.7 0.9 → 0.5 0.60 0.7
TEST(MedianStopping, FollowsThePaper) {
  SchedulerHarness sweep(Median());
  const std::vector<std::vector<double>> curves = {
      {0.1, 0.2, 0.6}, {0.3, 0.5, 0.4}, {0.5, 0.7, 0.9}};
  for (uint32_t trial = 0; trial < 3; ++trial) {
    for (int64_t step = 1; step <= 3; ++step) {
      sweep.Report({trial, step}, curves[trial][static_cast<size_t>(step - 1)]);
      EXPECT_THAT(sweep.verdict(), Continues());
    }
  }
  EXPECT_THAT(sweep.Report({3, 1}, 0.2).verdict(), Stops("median"));  // the median is 0.3
  EXPECT_THAT(sweep.Report({4, 1}, 0.3).verdict(), Continues());      // of 0.1 0.2 0.3 0.5: 0.25
  EXPECT_DOUBLE_EQ(sweep.verdict().reason.cutoff, 0.25);
  EXPECT_THAT(sweep.Report({4, 2}, 0.2).verdict(), Stops("median"));  // its best, 0.3, below 0.4
  EXPECT_EQ(sweep.verdict().reason.value, 0.3);
  EXPECT_DOUBLE_EQ(sweep.verdict().reason.cutoff, 0.4);
  EXPECT_EQ(sweep.verdict().reason.rank, 3);
  EXPECT_EQ(sweep.verdict().reason.peers, 4);
  const std::string stopped = sweep.text();
  // An early best value counts at all later steps.
  for (const auto& [step, value] : {std::pair<int64_t, double>{1, 0.9}, {2, 0.1}, {3, 0.1}})
    EXPECT_THAT(sweep.Report({5, step}, value).verdict(), Continues());
  EXPECT_EQ(sweep.verdict().reason.value, 0.9);
  testing::ExpectGolden("schedulers/median", stopped + "\n" + sweep.text() + "\n");
}

TEST(MedianStopping, SmallerIsBetterWhenMinimising) {
  SchedulerHarness sweep(PercentileStopping(Minimise("loss"), {}), "loss");
  sweep.Report({0, 1}, 0.1).Report({1, 1}, 0.3).Report({2, 1}, 0.5);
  EXPECT_THAT(sweep.Report({3, 1}, 0.2).verdict(), Continues());
  EXPECT_THAT(sweep.Report({4, 1}, 0.4).verdict(), Stops("median"));
}

TEST(MedianStopping, ContinuesATrialAtTheMedian) {
  SchedulerHarness sweep(Median());
  for (uint32_t trial = 0; trial < 9; ++trial)
    EXPECT_THAT(sweep.Report({trial, 1}, 0.5).verdict(), Continues());
}

TEST(MedianStopping, StopsNoTrialBeforeEnoughOthersHaveReachedTheStep) {
  SchedulerHarness sweep(Median());
  sweep.Report({0, 1}, 0.9).Report({1, 1}, 0.9);
  EXPECT_THAT(sweep.Report({2, 1}, 0.1).verdict(), Continues());
  EXPECT_EQ(sweep.verdict().reason.peers, 3);
  EXPECT_EQ(sweep.verdict().reason.rank, 3);
  EXPECT_THAT(sweep.Report({3, 1}, 0.1).verdict(), Stops("median"));
}

// A trial that trains alone is far ahead. Its later values do not count at earlier steps.
TEST(MedianStopping, OthersCountAsTheyWereAtTheSameStep) {
  SchedulerHarness sweep(Median({.min_samples = 1}));
  for (int64_t step = 1; step <= 100; ++step)
    sweep.Report({0, step}, static_cast<double>(step) / 100);
  EXPECT_THAT(sweep.Report({1, 1}, 0.02).verdict(), Continues());
  EXPECT_EQ(sweep.verdict().reason.cutoff, 0.01);
}

TEST(MedianStopping, MeansBeginAtTheGracePeriod) {
  SchedulerHarness sweep(Median({.grace_period = Step(3), .min_samples = 1}));
  EXPECT_EQ(sweep.NextMilestone({0, 0}), 3);
  sweep.Report({0, 1}, -1e9).Report({0, 2}, -1e9).Report({0, 3}, 0.5);
  EXPECT_THAT(sweep.Report({1, 3}, 0.4).verdict(), Stops("median"));
  EXPECT_EQ(sweep.verdict().reason.cutoff, 0.5);
}

TEST(MedianStopping, IsJudgedEveryIntervalAndRecordsWhatComesBetween) {
  SchedulerHarness sweep(Median({.grace_period = Step(2), .interval = 3, .min_samples = 1}));
  EXPECT_EQ(sweep.NextMilestone({0, 0}), 2);
  EXPECT_EQ(sweep.NextMilestone({0, 2}), 5);
  sweep.Report({0, 2}, 0.2).Report({0, 3}, 0.4);
  EXPECT_THAT(sweep.verdict(), Continues());
  EXPECT_EQ(sweep.verdict().reason.rung, Step(0));
  sweep.Report({0, 4}, 0.6).Report({0, 5}, 0.8);
  EXPECT_THAT(sweep.Report({1, 5}, 0.4).verdict(), Stops("median"));
  EXPECT_DOUBLE_EQ(sweep.verdict().reason.cutoff, 0.5);
}

TEST(MedianStopping, ALateReportCountsAtTheLineItHasPassedAndSkipsTheOthers) {
  SchedulerHarness sweep(Median({.interval = 2, .min_samples = 1}));
  EXPECT_EQ(sweep.Report({0, 6}, 0.5).verdict().reason.rung, Step(5));
  EXPECT_EQ(sweep.NextMilestone({0, 6}), 7);
  EXPECT_EQ(sweep.Report({1, 1}, 0.1).verdict().reason.peers, 1);  // nobody was at 1
  EXPECT_EQ(sweep.Report({1, 5}, 0.1).verdict().reason.peers, 2);
}

TEST(MedianStopping, ARepeatedOrEarlierStepIsNeitherJudgedNorRecorded) {
  SchedulerHarness sweep(Median({.min_samples = 1}));
  sweep.Report({0, 1}, 0.4).Report({0, 2}, 0.6);
  for (const int64_t step : {2, 1}) {
    EXPECT_THAT(sweep.Report({0, step}, -5).verdict(), Continues());
    EXPECT_EQ(sweep.verdict().reason.rung, Step(0));
  }
  EXPECT_EQ(sweep.NextMilestone({0, 0}), 3);
  sweep.Report({1, 1}, 0.5);
  EXPECT_EQ(sweep.Report({1, 2}, 0.5).verdict().reason.cutoff, 0.5);
  EXPECT_EQ(sweep.verdict().reason.peers, 2);
}

TEST(MedianStopping, EndedTrialsKeepTheirValues) {
  SchedulerHarness sweep(Median({.min_samples = 1}));
  sweep.Report({0, 1}, 0.9);
  sweep.End(0);
  EXPECT_THAT(sweep.Report({1, 1}, 0.1).verdict(), Stops("median"));
}

TEST(MedianStopping, OneNanTrialStopsOnlyItself) {
  SchedulerHarness sweep(Median());
  sweep.Report({0, 1}, 0.5).Report({1, 1}, 0.6).Report({2, 1}, 0.7);
  EXPECT_THAT(sweep.Report({3, 1}, kNaN).verdict(), Stops("median"));
  EXPECT_EQ(sweep.Report({4, 1}, 0.55).verdict().reason.cutoff, 0.55);  // of nan .5 .6 .7
  EXPECT_THAT(sweep.verdict(), Continues());
}

TEST(MedianStopping, TreatsValuesThatAreNotFiniteAsWorst) {
  for (const double bad : {kNaN, kInf, -kInf}) {
    SchedulerHarness sweep(Median({.min_samples = 1}));
    sweep.Report({0, 1}, bad).Report({0, 2}, 0.5);  // its mean stays bad, its best is 0.5
    EXPECT_THAT(sweep.Report({1, 1}, 0.1).verdict(), Continues());
    EXPECT_THAT(sweep.Report({1, 2}, 0.1).verdict(), Continues());
    EXPECT_TRUE(std::isnan(sweep.verdict().reason.cutoff) ||
                std::isinf(sweep.verdict().reason.cutoff));
    sweep.Report({2, 1}, 0.3).Report({3, 1}, 0.3);
    EXPECT_THAT(sweep.Report({4, 1}, bad).verdict(), Stops("median"));
  }
}

TEST(MedianStopping, HasLinesWithoutEndIfMaxIsZero) {
  const SchedulerHarness sweep(Median({.interval = 10}));
  EXPECT_EQ(sweep.NextMilestone({0, 1'000'000}), 1'000'001);
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(sweep.NextMilestone({0, kMax - 3}), 0);
}

TEST(MedianStopping, IsTheSameAfterASnapshot) {
  SchedulerHarness sweep(Median());
  sweep.Report({0, 1}, 0.4).Report({1, 1}, 0.5).Report({2, 1}, kNaN).Report({3, 1}, 0.6);
  sweep.Restore(Median());
  EXPECT_EQ(sweep.NextMilestone({0, 0}), 2);
  EXPECT_THAT(sweep.Report({4, 1}, 0.42).verdict(), Stops("median"));
  EXPECT_DOUBLE_EQ(sweep.verdict().reason.cutoff, 0.45);
}

SweepSpec Spec(const std::string& name, int64_t grace_period, int64_t interval, int64_t max) {
  SweepSpec spec{.objectives = {Maximise("accuracy")},
                 .scheduler = {.name = name,
                               .options = {{"grace_period", grace_period},
                                           {"interval", interval},
                                           {"min_samples", int64_t{1}}}},
                 .max_step = Step(max)};
  if (name == "percentile") spec.scheduler.options.emplace("percentile", 25.0);
  return spec;
}

TEST(MedianStopping, AnEditKeepsTheRecordsOfOldLines) {
  SchedulerHarness sweep(Median({.min_samples = 1}));
  for (int64_t step = 1; step <= 4; ++step) sweep.Report({0, step}, 0.5);
  sweep.Adapt(Spec("median", 2, 2, 9));
  EXPECT_EQ(sweep.NextMilestone({0, 4}), 6);
  EXPECT_EQ(sweep.NextMilestone({0, 8}), 0);  // beyond max
  EXPECT_THAT(sweep.Report({1, 2}, 0.4).verdict(), Stops("median"));
}

TEST(MedianStopping, TheGracePeriodMustLieBelowMax) {
  EXPECT_TRUE(MedianEntry().make(Spec("median", 9, 1, 0)).ok());
  EXPECT_THAT(MedianEntry().make(Spec("median", 9, 1, 9)).error().message,
              ::testing::StartsWith("scheduler.grace_period: 9 "));
}

// The best quarter of 0.1 … 0.5: place 0.25·4 from the best, 0.4.
TEST(PercentileStopping, ContinuesTheBestPercent) {
  SchedulerHarness sweep(Percentile(25));
  sweep.Report({0, 1}, 0.5).Report({1, 1}, 0.4).Report({2, 1}, 0.3);
  EXPECT_THAT(sweep.Report({3, 1}, 0.2).verdict(), Stops("percentile"));  // 0.45
  EXPECT_DOUBLE_EQ(sweep.verdict().reason.cutoff, 0.45);
  sweep.Report({4, 1}, 0.1);
  EXPECT_THAT(sweep.Report({5, 1}, 0.4).verdict(), Continues());
  EXPECT_EQ(sweep.verdict().reason.cutoff, 0.4);
  testing::ExpectGolden("schedulers/percentile", sweep.text() + "\n");
}

TEST(PercentileStopping, BestValuesAreComparedWithBestValues) {
  SchedulerHarness sweep(Percentile(50, 1));
  sweep.Report({0, 1}, 0.9).Report({0, 2}, 0.1);
  sweep.Report({1, 1}, 0.9);
  EXPECT_THAT(sweep.Report({1, 2}, 0.2).verdict(), Continues());
  EXPECT_EQ(sweep.verdict().reason.cutoff, 0.9);
}

TEST(PercentileStopping, AcceptsZeroAndAHundredPercent) {
  SchedulerHarness best_only(Percentile(0, 1));
  best_only.Report({0, 1}, 0.5);
  EXPECT_THAT(best_only.Report({1, 1}, 0.6).verdict(), Continues());
  EXPECT_THAT(best_only.Report({2, 1}, 0.59).verdict(), Stops("percentile"));

  SchedulerHarness all(Percentile(100, 1));
  all.Report({0, 1}, 0.5);
  EXPECT_THAT(all.Report({1, 1}, 0.5).verdict(), Continues());
  EXPECT_THAT(all.Report({2, 1}, 0.4).verdict(), Stops("percentile"));  // worse than all
}

// The definition, counted out, over random curves with gaps and bad values.
TEST(MedianStopping, AgreesWithTheDefinitionOverRandomSweeps) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RandomStream random(seed, TrialNumber(0), "median");
    SchedulerHarness sweep(Median());
    std::vector<std::map<int64_t, double>> curves(30);
    for (int round = 0; round < 300; ++round) {
      const auto trial = static_cast<uint32_t>(random.Integer(0, 29));
      auto& own = curves[trial];
      const int64_t step = (own.empty() ? 0 : own.rbegin()->first) + 1;
      const double value = static_cast<double>(random.Integer(0, 40)) / 8;
      double best = value;
      for (const auto& [at, reported] : own) best = std::max(best, reported);
      std::vector<double> means;
      for (uint32_t other = 0; other < 30; ++other) {
        if (other == trial || std::ssize(curves[other]) < step) continue;
        double sum = 0;
        for (int64_t at = 1; at <= step; ++at) sum += curves[other][at];
        means.push_back(sum / static_cast<double>(step));
      }
      std::ranges::sort(means);
      own[step] = value;
      const Verdict& verdict = sweep.Report({trial, step}, value).verdict();
      if (means.size() < 3) {
        ASSERT_THAT(verdict, Continues()) << seed;
        continue;
      }
      const size_t half = means.size() / 2;
      const double median =
          means.size() % 2 == 1 ? means[half] : std::midpoint(means[half - 1], means[half]);
      ASSERT_DOUBLE_EQ(verdict.reason.cutoff, median) << seed;
      ASSERT_EQ(verdict.kind == VerdictKind::kStop, best < median) << seed;
    }
  }
}

}  // namespace
}  // namespace attune::schedulers
