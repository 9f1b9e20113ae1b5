#include "core/brain/warm_start.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/space/domain.h"
#include "tests/support/mentions.h"
#include "tests/unit/core/brain_harness.h"

namespace attune {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr SweepId kEarlierSweep(3);

SweepSpec SpecWith(std::vector<Parameter> parameters, Objective objective = Minimise("loss")) {
  return {.objectives = {std::move(objective)},
          .space = SearchSpace(std::move(parameters)),
          .seed = 7,
          .warm_start = {kEarlierSweep}};
}

Parameter LrUpTo(double max) { return {"lr", FloatDomain{.min = 0.0, .max = max}, {}}; }

TrialResult CompletedTrial(uint32_t trial, double lr, double loss) {
  return {.config = {{"lr", lr}}, .metrics = {{"loss", loss}}, .trial = TrialNumber(trial)};
}

std::vector<uint32_t> TrialsTaken(const WarmStart& start) {
  std::vector<uint32_t> trials;
  for (const PriorResult& taken : start.taken) trials.push_back(taken.from.number.value);
  return trials;
}

std::string Refusal(const SweepSpec& spec, const SweepSpec& earlier,
                    std::vector<TrialResult> results) {
  const auto start = TakeResults(spec, kEarlierSweep, earlier, std::move(results));
  return start.ok() ? "" : start.error().message;
}

TEST(WarmStart, RanksInfeasibleTrialsLast) {
  std::vector<TrialResult> results{CompletedTrial(0, 0.1, 1), CompletedTrial(1, 0.2, 2),
                                   CompletedTrial(2, 0.3, 3), CompletedTrial(3, 0.4, kNaN)};
  results[0].metrics["latency"] = 20;
  results[1].metrics["latency"] = 5;
  SweepSpec spec = SpecWith({LrUpTo(1)});
  spec.constraints = {{.metric = "latency", .max = 10}};
  const WarmStart start = TakeResults(spec, kEarlierSweep, SpecWith({LrUpTo(1)}), results).value();
  EXPECT_EQ(TrialsTaken(start), (std::vector<uint32_t>{1, 2, 0, 3}));
}

TEST(WarmStart, RanksCompletedTrialsThenByStepThenFailedOnes) {
  std::vector<TrialResult> results{CompletedTrial(0, 0.1, 5), CompletedTrial(1, 0.2, 3),
                                   CompletedTrial(2, 0.3, 1), CompletedTrial(3, 0.4, 2),
                                   CompletedTrial(4, 0.5, kNaN)};
  results[2].complete = results[3].complete = false;
  results[2].step = Step(1);
  results[3].step = Step(9);
  TrialResult& broken = results.emplace_back(CompletedTrial(5, 0.6, 0));  // failed after reports
  broken.complete = false;
  broken.failed = true;
  broken.step = Step(20);
  const WarmStart start =
      TakeResults(SpecWith({LrUpTo(1)}), kEarlierSweep, SpecWith({LrUpTo(1)}), results).value();
  EXPECT_EQ(TrialsTaken(start), (std::vector<uint32_t>{1, 0, 3, 2, 4, 5}));
  EXPECT_EQ(start.taken.front().rank, 0.5 / 6);
  EXPECT_EQ(start.taken.back().rank, 5.5 / 6);
  EXPECT_THAT(start.text, testing::Mentions("6 of 6", "s3"));
}

TEST(WarmStart, RanksTheLargestFirstIfTheMetricIsMaximised) {
  const SweepSpec spec = SpecWith({LrUpTo(1)}, Maximise("loss"));
  const WarmStart start = TakeResults(spec, kEarlierSweep, spec,
                                      {CompletedTrial(0, 0.1, 0.5), CompletedTrial(1, 0.2, 0.9)})
                              .value();
  EXPECT_EQ(TrialsTaken(start), (std::vector<uint32_t>{1, 0}));
}

SweepSpec TwoMetrics() {
  SweepSpec spec = SpecWith({LrUpTo(1)});
  spec.objectives.push_back(Maximise("speed"));
  return spec;
}

TrialResult CompletedWithTwo(uint32_t trial, double loss, double speed) {
  return {.config = {{"lr", 0.5}},
          .metrics = {{"loss", loss}, {"speed", speed}},
          .trial = TrialNumber(trial)};
}

TEST(WarmStart, RanksSeveralMetricsByFronts) {
  const std::vector<TrialResult> results{
      CompletedWithTwo(0, 3, 1),   // dominated by trials 1 and 2
      CompletedWithTwo(1, 1, 3),   // on the front, with a small volume
      CompletedWithTwo(2, 2, 9),   // on the front, with the largest volume
      CompletedWithTwo(3, 0, 0),   // the end of the front with the best loss
      CompletedWithTwo(4, 9, 10),  // the end of the front with the best speed
  };
  const WarmStart start = TakeResults(TwoMetrics(), kEarlierSweep, TwoMetrics(), results).value();
  EXPECT_EQ(TrialsTaken(start), (std::vector<uint32_t>{2, 1, 3, 4, 0}));
  EXPECT_EQ(start.taken.front().rank, 0.5 / 5);
}

TEST(WarmStart, TheOrderOfMetricsDoesNotMatter) {
  SweepSpec earlier = TwoMetrics();
  std::swap(earlier.objectives[0], earlier.objectives[1]);
  const std::vector<TrialResult> results{CompletedWithTwo(0, 1, 3), CompletedWithTwo(1, 2, 9),
                                         CompletedWithTwo(2, 0, 0)};
  EXPECT_EQ(TakeResults(TwoMetrics(), kEarlierSweep, earlier, results).value(),
            TakeResults(TwoMetrics(), kEarlierSweep, TwoMetrics(), results).value());
}

TEST(WarmStart, RanksStoppedTrialsLaterAndTrialsThatLackAMetricAsFailed) {
  std::vector<TrialResult> results{CompletedWithTwo(0, 0, kNaN), CompletedWithTwo(1, 0, 9),
                                   CompletedWithTwo(2, 0, 9),    CompletedWithTwo(3, 1, 8),
                                   CompletedWithTwo(4, 5, 5),    CompletedWithTwo(5, 0, 9)};
  for (const uint32_t cut : {1, 2, 3}) results[cut].complete = false;
  results[1].step = results[3].step = Step(7);
  results[2].step = Step(8);
  results[5].metrics.erase("speed");
  const WarmStart start = TakeResults(TwoMetrics(), kEarlierSweep, TwoMetrics(), results).value();
  EXPECT_EQ(TrialsTaken(start), (std::vector<uint32_t>{4, 2, 1, 3, 0, 5}));
}

TEST(WarmStart, NamesAMetricThatTheEarlierSweepDoesNotHave) {
  const std::vector<TrialResult> one{CompletedWithTwo(0, 1, 1)};
  EXPECT_THAT(Refusal(TwoMetrics(), SpecWith({LrUpTo(1)}), one),
              testing::Mentions("warm_start: ", "s3", "loss", "speed"));
  SweepSpec slow = TwoMetrics();
  slow.objectives[1].mode = Mode::kMin;
  EXPECT_THAT(Refusal(TwoMetrics(), slow, one), testing::Mentions("warm_start: ", "s3", "speed"));
  EXPECT_EQ(Refusal(SpecWith({LrUpTo(1)}), TwoMetrics(), one), "")
      << "the earlier sweep may have more metrics";
}

TEST(WarmStart, LeavesOutAndCountsTrialsOutsideTheSpace) {
  const WarmStart start =
      TakeResults(
          SpecWith({LrUpTo(0.25)}), kEarlierSweep, SpecWith({LrUpTo(1)}),
          {CompletedTrial(0, 0.1, 1), CompletedTrial(1, 0.25, 2), CompletedTrial(2, 0.26, 3)})
          .value();
  EXPECT_EQ(TrialsTaken(start), (std::vector<uint32_t>{0, 1}));
  EXPECT_THAT(start.text, testing::Mentions("2 of 3", "s3", "1 outside", "lr"));
}

TEST(WarmStart, DrawsMissingParametersTheSameEachTime) {
  const SweepSpec spec =
      SpecWith({LrUpTo(1), {"width", IntDomain{.min = 1, .max = 1'000'000}, {}}});
  const auto take = [&] {
    return TakeResults(spec, kEarlierSweep, SpecWith({LrUpTo(1)}),
                       {CompletedTrial(0, 0.1, 1), CompletedTrial(1, 0.2, 2)})
        .value();
  };
  const WarmStart start = take();
  EXPECT_EQ(start, take());
  EXPECT_NE(*start.taken[0].config.Find("width"), *start.taken[1].config.Find("width"));
  EXPECT_THAT(start.text, testing::Mentions("2 of 2", "s3", "width"));
}

TEST(WarmStart, LeavesOutRemovedParametersAndFollowsConditions) {
  const SweepSpec spec = SpecWith({LrUpTo(1),
                                   {"optimizer", CategoricalDomain{{std::string("sgd")}}, {}},
                                   {"momentum",
                                    FloatDomain{.min = 0, .max = 1},
                                    {{.parent = "optimizer", .any_of = {std::string("sgd")}}}}});
  TrialResult old = CompletedTrial(0, 0.1, 1);
  old.config.Set("optimizer", std::string("sgd"));
  old.config.Set("depth", int64_t{3});
  const WarmStart start = TakeResults(spec, kEarlierSweep, SpecWith({LrUpTo(1)}), {old}).value();
  const Config& config = start.taken.front().config;
  EXPECT_EQ(spec.space.Resolve(config).value(), config);
}

TEST(WarmStart, TakesALimitedNumberSpreadOverTheRanks) {
  std::vector<TrialResult> results;
  for (uint32_t i = 0; i < 2 * kMostPrior; ++i) results.push_back(CompletedTrial(i, 0.5, i));
  const WarmStart start =
      TakeResults(SpecWith({LrUpTo(1)}), kEarlierSweep, SpecWith({LrUpTo(1)}), results).value();
  ASSERT_EQ(start.taken.size(), kMostPrior);
  EXPECT_EQ(TrialsTaken(start)[1], 2u);
  EXPECT_THAT(start.text, testing::Mentions("1000 of 2000", "s3"));
  results.resize(kMostPrior);
  EXPECT_EQ(TakeResults(SpecWith({LrUpTo(1)}), kEarlierSweep, SpecWith({LrUpTo(1)}), results)
                ->taken.size(),
            kMostPrior);
}

TEST(WarmStart, ExplainsWhyASweepCannotBeUsed) {
  const SweepSpec spec = SpecWith({LrUpTo(1)});
  const std::vector<TrialResult> one{CompletedTrial(0, 0.5, 1)};
  EXPECT_THAT(Refusal(spec, SpecWith({LrUpTo(1)}, Maximise("accuracy")), one),
              testing::Mentions("warm_start: ", "s3", "accuracy", "loss"));
  EXPECT_THAT(Refusal(spec, SpecWith({LrUpTo(1)}, Maximise("loss")), one),
              testing::Mentions("warm_start: ", "s3", "loss"));
  EXPECT_THAT(Refusal(spec, SpecWith({{"x", IntDomain{.min = 1, .max = 2}, {}}}), one),
              testing::Mentions("s3", "parameters"));
  EXPECT_THAT(Refusal(spec, spec, {}), testing::Mentions("s3", "no results"));
  EXPECT_THAT(Refusal(SpecWith({LrUpTo(0.1)}), spec, one),
              testing::Mentions("0 of 1", "s3", "1 outside", "lr"));
}

using WarmStartOfBrain = BrainTest;

TEST_F(WarmStartOfBrain, TakenResultsAreInTheLog) {
  SweepSpec spec = testing::ToySpec();
  spec.warm_start = {kEarlierSweep};
  const WarmStart start{
      .from = kEarlierSweep,
      .results = 1,
      .taken = {{.from = {kEarlierSweep, TrialNumber(4)}, .config = {}, .rank = 0.5}},
      .text = "1 of 1"};
  const auto events = Do(CreateSweep{.spec = spec, .warm_start = {start}});
  const auto& created = std::get<SweepCreated>(events.front().fact);
  EXPECT_EQ(*created.warm_start, std::vector<WarmStart>{start});
}

TEST_F(WarmStartOfBrain, ASweepWhoseResultsAreMissingIsRefused) {
  SweepSpec spec = testing::ToySpec();
  spec.warm_start = {kEarlierSweep};
  EXPECT_THAT(RefusalOf(CreateSweep{.spec = spec}).message, testing::Mentions("warm_start: "));
}

}  // namespace
}  // namespace attune
