#include "core/brain/warm_start.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/space/domain.h"
#include "tests/unit/core/brain_harness.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr SweepId kOld(3);

SweepSpec Of(std::vector<Parameter> parameters, Objective objective = Minimise("loss")) {
  return {.objectives = {std::move(objective)},
          .space = SearchSpace(std::move(parameters)),
          .seed = 7,
          .warm_start = {kOld}};
}

Parameter Lr(double max) { return {"lr", FloatDomain{.min = 0.0, .max = max}, {}}; }

TrialResult Done(uint32_t trial, double lr, double loss) {
  return {.config = {{"lr", lr}}, .metrics = {{"loss", loss}}, .trial = TrialNumber(trial)};
}

std::vector<uint32_t> Trials(const WarmStart& start) {
  std::vector<uint32_t> trials;
  for (const PriorResult& taken : start.taken) trials.push_back(taken.from.number.value);
  return trials;
}

std::string Refusal(const SweepSpec& spec, const SweepSpec& earlier,
                    std::vector<TrialResult> results) {
  const auto start = TakeResults(spec, kOld, earlier, std::move(results));
  return start.ok() ? "" : start.error().message;
}

TEST(WarmStart, RanksInfeasibleTrialsLast) {
  std::vector<TrialResult> results{Done(0, 0.1, 1), Done(1, 0.2, 2), Done(2, 0.3, 3),
                                   Done(3, 0.4, kNaN)};
  results[0].metrics["latency"] = 20;
  results[1].metrics["latency"] = 5;
  SweepSpec spec = Of({Lr(1)});
  spec.constraints = {{.metric = "latency", .max = 10}};
  const WarmStart start = TakeResults(spec, kOld, Of({Lr(1)}), results).value();
  EXPECT_EQ(Trials(start), (std::vector<uint32_t>{1, 2, 0, 3}));
}

TEST(WarmStart, RanksCompletedTrialsThenByStepThenFailedOnes) {
  std::vector<TrialResult> results{Done(0, 0.1, 5), Done(1, 0.2, 3), Done(2, 0.3, 1),
                                   Done(3, 0.4, 2), Done(4, 0.5, kNaN)};
  results[2].complete = results[3].complete = false;
  results[2].step = Step(1);
  results[3].step = Step(9);
  TrialResult& broken = results.emplace_back(Done(5, 0.6, 0));  // it had reported before
  broken.complete = false;
  broken.failed = true;
  broken.step = Step(20);
  const WarmStart start = TakeResults(Of({Lr(1)}), kOld, Of({Lr(1)}), results).value();
  EXPECT_EQ(Trials(start), (std::vector<uint32_t>{1, 0, 3, 2, 4, 5}));
  EXPECT_EQ(start.taken.front().rank, 0.5 / 6);
  EXPECT_EQ(start.taken.back().rank, 5.5 / 6);
  EXPECT_EQ(start.text, "6 of 6 results of s3");
}

TEST(WarmStart, RanksTheLargestFirstIfTheMetricIsMaximised) {
  const SweepSpec spec = Of({Lr(1)}, Maximise("loss"));
  const WarmStart start =
      TakeResults(spec, kOld, spec, {Done(0, 0.1, 0.5), Done(1, 0.2, 0.9)}).value();
  EXPECT_EQ(Trials(start), (std::vector<uint32_t>{1, 0}));
}

SweepSpec OfTwo() {
  SweepSpec spec = Of({Lr(1)});
  spec.objectives.push_back(Maximise("speed"));
  return spec;
}

TrialResult DoneOfTwo(uint32_t trial, double loss, double speed) {
  return {.config = {{"lr", 0.5}},
          .metrics = {{"loss", loss}, {"speed", speed}},
          .trial = TrialNumber(trial)};
}

TEST(WarmStart, RanksSeveralMetricsByFronts) {
  const std::vector<TrialResult> results{
      DoneOfTwo(0, 3, 1),   // beaten by all of the front but 3
      DoneOfTwo(1, 1, 3),   // of the front, which adds little
      DoneOfTwo(2, 2, 9),   // most
      DoneOfTwo(3, 0, 0),   // an end
      DoneOfTwo(4, 9, 10),  // the other one, which is nearer to the rest
  };
  const WarmStart start = TakeResults(OfTwo(), kOld, OfTwo(), results).value();
  EXPECT_EQ(Trials(start), (std::vector<uint32_t>{2, 1, 3, 4, 0}));
  EXPECT_EQ(start.taken.front().rank, 0.5 / 5);
}

TEST(WarmStart, TheOrderOfMetricsDoesNotMatter) {
  SweepSpec earlier = OfTwo();
  std::swap(earlier.objectives[0], earlier.objectives[1]);
  const std::vector<TrialResult> results{DoneOfTwo(0, 1, 3), DoneOfTwo(1, 2, 9),
                                         DoneOfTwo(2, 0, 0)};
  EXPECT_EQ(TakeResults(OfTwo(), kOld, earlier, results).value(),
            TakeResults(OfTwo(), kOld, OfTwo(), results).value());
}

TEST(WarmStart, RanksStoppedTrialsLaterAndTrialsThatLackAMetricAsFailed) {
  std::vector<TrialResult> results{DoneOfTwo(0, 0, kNaN), DoneOfTwo(1, 0, 9), DoneOfTwo(2, 0, 9),
                                   DoneOfTwo(3, 1, 8),    DoneOfTwo(4, 5, 5), DoneOfTwo(5, 0, 9)};
  for (const uint32_t cut : {1, 2, 3}) results[cut].complete = false;
  results[1].step = results[3].step = Step(7);
  results[2].step = Step(8);
  results[5].metrics.erase("speed");
  const WarmStart start = TakeResults(OfTwo(), kOld, OfTwo(), results).value();
  EXPECT_EQ(Trials(start), (std::vector<uint32_t>{4, 2, 1, 3, 0, 5}));
}

TEST(WarmStart, NamesAMetricThatTheEarlierSweepDoesNotHave) {
  const std::vector<TrialResult> one{DoneOfTwo(0, 1, 1)};
  EXPECT_EQ(Refusal(OfTwo(), Of({Lr(1)}), one),
            "warm_start: s3 improves loss, not speed; name a sweep of the same metric");
  SweepSpec slow = OfTwo();
  slow.objectives[1].mode = Mode::kMin;
  EXPECT_EQ(Refusal(OfTwo(), slow, one),
            "warm_start: s3 minimises speed, and this sweep shall maximise it; name a sweep of the "
            "same goal");
  EXPECT_EQ(Refusal(Of({Lr(1)}), OfTwo(), one), "") << "of more metrics one will do";
}

TEST(WarmStart, LeavesOutAndCountsTrialsOutsideTheSpace) {
  const WarmStart start = TakeResults(Of({Lr(0.25)}), kOld, Of({Lr(1)}),
                                      {Done(0, 0.1, 1), Done(1, 0.25, 2), Done(2, 0.26, 3)})
                              .value();
  EXPECT_EQ(Trials(start), (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(start.text, "2 of 3 results of s3; 1 outside of lr");
}

TEST(WarmStart, DrawsMissingParametersTheSameEachTime) {
  const SweepSpec spec = Of({Lr(1), {"width", IntDomain{.min = 1, .max = 1'000'000}, {}}});
  const auto take = [&] {
    return TakeResults(spec, kOld, Of({Lr(1)}), {Done(0, 0.1, 1), Done(1, 0.2, 2)}).value();
  };
  const WarmStart start = take();
  EXPECT_EQ(start, take());
  EXPECT_NE(*start.taken[0].config.Find("width"), *start.taken[1].config.Find("width"));
  EXPECT_EQ(start.text, "2 of 2 results of s3; drawn at random where it was absent: width");
}

TEST(WarmStart, LeavesOutRemovedParametersAndFollowsConditions) {
  const SweepSpec spec = Of({Lr(1),
                             {"optimizer", CategoricalDomain{{std::string("sgd")}}, {}},
                             {"momentum",
                              FloatDomain{.min = 0, .max = 1},
                              {{.parent = "optimizer", .any_of = {std::string("sgd")}}}}});
  TrialResult old = Done(0, 0.1, 1);
  old.config.Set("optimizer", std::string("sgd"));
  old.config.Set("depth", int64_t{3});
  const WarmStart start = TakeResults(spec, kOld, Of({Lr(1)}), {old}).value();
  const Config& config = start.taken.front().config;
  EXPECT_EQ(spec.space.Resolve(config).value(), config);
}

TEST(WarmStart, TakesALimitedNumberSpreadOverTheRanks) {
  std::vector<TrialResult> results;
  for (uint32_t i = 0; i < 2 * kMostPrior; ++i) results.push_back(Done(i, 0.5, i));
  const WarmStart start = TakeResults(Of({Lr(1)}), kOld, Of({Lr(1)}), results).value();
  ASSERT_EQ(start.taken.size(), kMostPrior);
  EXPECT_EQ(Trials(start)[1], 2u);
  EXPECT_EQ(start.text, "1000 of 2000 results of s3, from the best to the worst");
  results.resize(kMostPrior);
  EXPECT_EQ(TakeResults(Of({Lr(1)}), kOld, Of({Lr(1)}), results)->taken.size(), kMostPrior);
}

TEST(WarmStart, ExplainsWhyASweepCannotBeUsed) {
  const SweepSpec spec = Of({Lr(1)});
  const std::vector<TrialResult> one{Done(0, 0.5, 1)};
  EXPECT_EQ(Refusal(spec, Of({Lr(1)}, Maximise("accuracy")), one),
            "warm_start: s3 improves accuracy, not loss; name a sweep of the same metric");
  EXPECT_EQ(Refusal(spec, Of({Lr(1)}, Maximise("loss")), one),
            "warm_start: s3 maximises loss, and this sweep shall minimise it; name a sweep of the "
            "same goal");
  EXPECT_THAT(Refusal(spec, Of({{"x", IntDomain{.min = 1, .max = 2}, {}}}), one),
              HasSubstr("has none of this sweep's parameters"));
  EXPECT_THAT(Refusal(spec, spec, {}), HasSubstr("has no results yet"));
  EXPECT_THAT(Refusal(Of({Lr(0.1)}), spec, one),
              HasSubstr("0 of 1 results of s3; 1 outside of lr"));
}

using WarmStartOfBrain = BrainTest;

TEST_F(WarmStartOfBrain, TakenResultsAreInTheLog) {
  SweepSpec spec = testing::ToySpec();
  spec.warm_start = {kOld};
  const WarmStart start{.from = kOld,
                        .results = 1,
                        .taken = {{.from = {kOld, TrialNumber(4)}, .config = {}, .rank = 0.5}},
                        .text = "1 of 1"};
  const auto events = Do(CreateSweep{.spec = spec, .warm_start = {start}});
  const auto& created = std::get<SweepCreated>(events.front().fact);
  EXPECT_EQ(*created.warm_start, std::vector<WarmStart>{start});
}

TEST_F(WarmStartOfBrain, ASweepWhoseResultsAreMissingIsRefused) {
  SweepSpec spec = testing::ToySpec();
  spec.warm_start = {kOld};
  EXPECT_THAT(Refused(CreateSweep{.spec = spec}).message, HasSubstr("warm_start: the results"));
}

}  // namespace
}  // namespace attune
