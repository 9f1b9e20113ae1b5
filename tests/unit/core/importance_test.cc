#include "core/analysis/importance.h"

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "core/space/draw.h"
#include "tests/support/mentions.h"

namespace attune {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Value Text(const char* text) { return std::string(text); }

double Real(const Config& config, std::string_view name) {
  return std::get<double>(*config.Find(name));
}

// Trials with random configurations and the loss of each.
std::vector<TrialResult> DrawResults(const SearchSpace& space, uint32_t count,
                                     const std::function<double(const Config&)>& loss) {
  std::vector<TrialResult> results;
  for (uint32_t i = 0; i < count; ++i) {
    Config config;
    for (const size_t place : space.order()) {
      const Parameter& parameter = space.parameters()[place];
      if (!space.IsActive(parameter, config)) continue;
      RandomStream stream(1, ProposalNumber(i), "test/" + parameter.name);
      config.Set(parameter.name, Draw(parameter.domain, stream));
    }
    results.push_back(
        {.config = config, .metrics = {{"loss", loss(config)}}, .trial = TrialNumber(i)});
  }
  return results;
}

std::map<std::string, double> SharesOf(const Importances& importances) {
  EXPECT_EQ(importances.reason, "");
  std::map<std::string, double> shares;
  double sum = 0;
  double before = 1;
  for (const auto& [parameter, share, low, high] : importances.parameters) {
    EXPECT_LE(share, before) << "parameters are sorted by importance";
    EXPECT_LE(low, share) << parameter;
    EXPECT_GE(high, share) << parameter;
    before = share;
    sum += shares[parameter] = share;
  }
  EXPECT_NEAR(sum, 1, 1e-9);
  return shares;
}

std::map<std::string, double> ImportancesFor(const SearchSpace& space, uint32_t count,
                                             const std::function<double(const Config&)>& loss) {
  return SharesOf(ImportancesOf(space, Minimise("loss"), DrawResults(space, count, loss)));
}

SearchSpace ThreeRanges() {
  return SearchSpace({{"x", FloatDomain{.min = -1, .max = 1}},
                      {"y", FloatDomain{.min = -1, .max = 1}},
                      {"z", FloatDomain{.min = -1, .max = 1}}});
}

TEST(Importance, IsOneForTheOnlyParameterThatMatters) {
  const auto shares =
      ImportancesFor(ThreeRanges(), 300, [](const Config& c) { return std::abs(Real(c, "y")); });
  EXPECT_GT(shares.at("y"), 0.95);
}

TEST(Importance, IsEqualForParametersThatMatterEqually) {
  const auto shares = ImportancesFor(
      ThreeRanges(), 2000, [](const Config& c) { return std::max(Real(c, "x"), Real(c, "y")); });
  EXPECT_NEAR(shares.at("x"), 0.5, 0.05);
  EXPECT_NEAR(shares.at("y"), 0.5, 0.05);
  EXPECT_LT(shares.at("z"), 0.02);
}

// The best tenth lie in |x| < a, |y| < b, with a·b = 0.1: the divergences are 1/a - 1 and 1/b - 1.
TEST(Importance, FollowsTheVolumeOfTheBestTrials) {
  const double a = 0.2;
  const double b = 0.5;
  const auto shares = ImportancesFor(ThreeRanges(), 20'000, [&](const Config& c) {
    return std::max(std::abs(Real(c, "x")) / a, std::abs(Real(c, "y")) / b);
  });
  EXPECT_NEAR(shares.at("x"), 4.0 / 5, 0.05);
  EXPECT_NEAR(shares.at("y"), 1.0 / 5, 0.05);
}

TEST(Importance, UsesTheLargestValuesIfTheMetricIsMaximised) {
  const auto results =
      DrawResults(ThreeRanges(), 300, [](const Config& c) { return Real(c, "x"); });
  std::vector<TrialResult> turned = results;
  for (TrialResult& result : turned) result.metrics["loss"] *= -1;
  const auto highest = ImportancesOf(ThreeRanges(), Maximise("loss"), results);
  const auto lowest = ImportancesOf(ThreeRanges(), Minimise("loss"), turned);
  EXPECT_EQ(SharesOf(highest), SharesOf(lowest));
  EXPECT_EQ(highest.parameters.front().parameter, "x");
}

TEST(Importance, SupportsListsStepsAndLogScales) {
  const SearchSpace space({{"kind", CategoricalDomain{{Text("a"), Text("b"), Text("c")}}},
                           {"lr", FloatDomain{.min = 1e-6, .max = 1, .scale = Scale::kLog}},
                           {"width", IntDomain{.min = 1, .max = 1000}},
                           {"layers", IntDomain{.min = 1, .max = 4}},
                           {"on", CategoricalDomain{{true, false}}},
                           {"fixed", ConstantDomain{int64_t{3}}}});
  const auto most = [&](const std::function<double(const Config&)>& loss) {
    const auto shares = ImportancesFor(space, 400, loss);
    EXPECT_FALSE(shares.contains("fixed"));
    for (const auto& [parameter, share] : shares) {
      if (share > 0.9) return parameter;
    }
    return std::string();
  };
  const auto noise = [](const Config& c) { return std::fmod(Real(c, "lr") * 1e9, 1.0) / 100; };
  EXPECT_EQ(most([&](const Config& c) { return (*c.Find("kind") != Text("b")) + noise(c); }),
            "kind");
  EXPECT_EQ(most([](const Config& c) { return std::abs(std::log10(Real(c, "lr")) + 4); }), "lr");
  EXPECT_EQ(most([](const Config& c) {
              return std::abs(double(std::get<int64_t>(*c.Find("width"))) - 700);
            }),
            "width");
  EXPECT_EQ(most([&](const Config& c) {
              return std::abs(double(std::get<int64_t>(*c.Find("layers"))) - 2) + noise(c);
            }),
            "layers");
  EXPECT_EQ(most([&](const Config& c) { return (*c.Find("on") == Value(true)) + noise(c); }), "on");
}

SearchSpace SpaceWithConditions() {
  return SearchSpace({{"optimizer", CategoricalDomain{{Text("sgd"), Text("adam")}}},
                      {"momentum",
                       FloatDomain{.min = 0, .max = 1},
                       {{.parent = "optimizer", .any_of = {Text("sgd")}}}},
                      {"width", FloatDomain{.min = 0, .max = 1}}});
}

TEST(Importance, APresentParameterIsCreditedToItsParent) {
  const auto shares = ImportancesFor(SpaceWithConditions(), 600, [](const Config& c) {
    return (*c.Find("optimizer") == Text("sgd") ? 0 : 10) + Real(c, "width");
  });
  EXPECT_LT(shares.at("momentum"), 0.03);
  EXPECT_GT(shares.at("optimizer"), 0.1);
  EXPECT_GT(shares.at("width"), 0.5);
}

TEST(Importance, ARareParameterIsMeasuredWhereItExists) {
  const auto shares = ImportancesFor(SpaceWithConditions(), 600, [](const Config& c) {
    return *c.Find("optimizer") == Text("sgd") ? std::abs(Real(c, "momentum") - 0.9) : 10;
  });
  EXPECT_GT(shares.at("momentum"), 0.5);
  EXPECT_LT(shares.at("width"), 0.03);
}

TEST(Importance, DoesNotDependOnWhereTheSearcherSampled) {
  // 60 of 100 trials lie near the best value of x, like the proposals of a searcher that learns.
  auto results =
      DrawResults(ThreeRanges(), 100, [](const Config& c) { return std::abs(Real(c, "x") - 0.4); });
  for (size_t i = 0; i < 60; ++i) {
    TrialResult& result = results[i];
    result.config.Set("x", 0.4 + Real(result.config, "x") / 20);
    result.metrics["loss"] = std::abs(Real(result.config, "x") - 0.4);
  }
  EXPECT_GT(SharesOf(ImportancesOf(ThreeRanges(), Minimise("loss"), results)).at("x"), 0.7);
}

TEST(Importance, RanksFailedTrialsLast) {
  const auto results = DrawResults(ThreeRanges(), 300, [](const Config& c) {
    return Real(c, "x") > -0.8 ? kNaN : Real(c, "z") * 1e-9;
  });
  EXPECT_GT(SharesOf(ImportancesOf(ThreeRanges(), Minimise("loss"), results)).at("x"), 0.5);
}

TEST(Importance, ALongListIsNotImportantByChance) {
  CategoricalDomain many;
  for (int64_t i = 0; i < 12; ++i) many.values.emplace_back(i);
  const SearchSpace space({{"many", many}, {"x", FloatDomain{.min = 0, .max = 1}}});
  const auto shares = ImportancesFor(space, 40, [](const Config& c) { return Real(c, "x"); });
  EXPECT_GT(shares.at("x"), 0.7);
}

TEST(Importance, ValuesFromBeforeAnEditCountIfTheyAreComparable) {
  const auto results =
      DrawResults(ThreeRanges(), 100, [](const Config& c) { return Real(c, "x"); });
  const SearchSpace edited({{"x", FloatDomain{.min = 0, .max = 1}},
                            {"y", FloatDomain{.min = -1, .max = 1}},
                            {"z", CategoricalDomain{{Text("new"), Text("newer")}}}});
  const auto shares = SharesOf(ImportancesOf(edited, Minimise("loss"), results));
  EXPECT_GT(shares.at("x"), 0.9);
  EXPECT_EQ(shares.at("z"), 0) << "no trial has a value of the new list";
}

TEST(Importance, DoesNotChangeWithTheScale) {
  const auto loss = [](const Config& c) { return std::abs(Real(c, "x") - 0.7); };
  const auto results = DrawResults(ThreeRanges(), 200, loss);
  auto stretched = results;
  for (TrialResult& result : stretched)
    result.config.Set("x", std::exp(9 * Real(result.config, "x")));
  EXPECT_EQ(SharesOf(ImportancesOf(ThreeRanges(), Minimise("loss"), results)),
            SharesOf(ImportancesOf(ThreeRanges(), Minimise("loss"), stretched)));
}

TEST(Importance, FewTrialsHaveNoneAndTheReasonIsGiven) {
  const auto value = [](const Config& c) { return Real(c, "x"); };
  const Importances few =
      ImportancesOf(ThreeRanges(), Minimise("loss"), DrawResults(ThreeRanges(), 19, value));
  EXPECT_TRUE(few.parameters.empty());
  EXPECT_THAT(few.reason, testing::Mentions("20", "19"));
  EXPECT_EQ(
      ImportancesOf(ThreeRanges(), Minimise("loss"), DrawResults(ThreeRanges(), 20, value)).reason,
      "");
}

double SumOf(const Config& c, double noise) {
  return std::abs(Real(c, "x")) + 0.5 * std::abs(Real(c, "y")) +
         noise * std::fmod(Real(c, "z") * 1e6, 1.0);
}

// The parameters whose intervals lie completely above that of another one.
std::vector<std::string> ClearOrder(const Importances& importances) {
  std::vector<std::string> order;
  for (const Importance& a : importances.parameters) {
    for (const Importance& b : importances.parameters) {
      if (a.low > b.high) order.push_back(a.parameter + " > " + b.parameter);
    }
  }
  return order;
}

TEST(Importance, MoreTrialsDoNotFlipParametersWithDisjointIntervals) {
  const auto loss = [](const Config& c) { return SumOf(c, 0.2); };
  for (uint32_t count = 60; count <= 300; count += 20) {
    const auto before =
        ImportancesOf(ThreeRanges(), Minimise("loss"), DrawResults(ThreeRanges(), count, loss));
    const auto after =
        ImportancesOf(ThreeRanges(), Minimise("loss"), DrawResults(ThreeRanges(), count + 5, loss));
    for (const std::string& order : ClearOrder(before)) {
      const std::string reversed = order.substr(4) + " > " + order.substr(0, 1);
      EXPECT_THAT(ClearOrder(after), ::testing::Not(::testing::Contains(reversed))) << count;
    }
  }
}

TEST(Importance, HasNarrowerIntervalsWithMoreTrials) {
  const auto width = [](uint32_t count) {
    const auto importances = ImportancesOf(
        ThreeRanges(), Minimise("loss"),
        DrawResults(ThreeRanges(), count, [](const Config& c) { return SumOf(c, 0); }));
    return importances.parameters[0].high - importances.parameters[0].low;
  };
  EXPECT_LT(width(4000), width(60) / 2);
}

TEST(Importance, IsTheSameEachTime) {
  const auto once = [] {
    return ImportancesOf(
        ThreeRanges(), Minimise("loss"),
        DrawResults(ThreeRanges(), 100, [](const Config& c) { return SumOf(c, 0.5); }));
  };
  EXPECT_EQ(once().parameters[0].low, once().parameters[0].low);
  EXPECT_EQ(once().parameters[0].high, once().parameters[0].high);
}

std::vector<TrialProgress> Progress(int count, int64_t step, bool over) {
  return std::vector<TrialProgress>(static_cast<size_t>(count), {Step(step), over});
}

std::vector<TrialProgress> operator+(std::vector<TrialProgress> a,
                                     const std::vector<TrialProgress>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(CommonStep, IsTheLargestRungThatHalfOfTheEndedTrialsHaveReached) {
  const std::vector<Step> rungs = {Step(1), Step(3), Step(9)};
  EXPECT_EQ(CommonStep(Progress(60, 1, true) + Progress(40, 9, true), rungs, Step(9)), Step(1));
  EXPECT_EQ(CommonStep(Progress(50, 1, true) + Progress(50, 9, true), rungs, Step(9)), Step(9));
  EXPECT_EQ(CommonStep(Progress(50, 1, true) + Progress(50, 8, true), rungs, Step(9)), Step(3));
}

TEST(CommonStep, DoesNotFallIfNewTrialsStart) {
  const auto ended = Progress(30, 100, true);
  EXPECT_EQ(CommonStep(ended, {}, Step(100)), Step(100));
  EXPECT_EQ(CommonStep(ended + Progress(500, 2, false), {}, Step(100)), Step(100));
}

TEST(CommonStep, CountsRunningTrialsThatHaveReachedIt) {
  EXPECT_EQ(CommonStep(Progress(30, 17, false), {}, Step(100)), Step(16));
  EXPECT_EQ(CommonStep(Progress(30, 23, false), {}, Step(100)), Step(16)) << "it changes rarely";
  EXPECT_EQ(CommonStep(Progress(30, 24, false), {}, Step(100)), Step(24));
}

TEST(CommonStep, NeedsTwentyTrialsIfSoManyHaveReported) {
  EXPECT_EQ(CommonStep(Progress(19, 50, true) + Progress(1, 2, false), {}, Step(0)), Step(2));
  EXPECT_EQ(CommonStep(Progress(3, 5, true), {}, Step(0)), Step(4));
  EXPECT_EQ(CommonStep(Progress(30, 0, true), {}, Step(9)), Step(0)) << "no trial has reported";
}

TEST(CommonStep, IsBelowTheFirstRungUntilTrialsReachIt) {
  EXPECT_EQ(CommonStep(Progress(30, 7, false), {Step(10)}, Step(90)), Step(6));
}

TEST(Importance, EqualResultsHaveNone) {
  const auto reason = [](const std::function<double(const Config&)>& value) {
    return ImportancesOf(ThreeRanges(), Minimise("loss"), DrawResults(ThreeRanges(), 50, value))
        .reason;
  };
  EXPECT_THAT(reason([](const Config&) { return 0.5; }), testing::Mentions("loss"));
  EXPECT_THAT(reason([](const Config&) { return kNaN; }), testing::Mentions("loss"));
}

TEST(Importance, TiedTrialsAreAllAmongTheBest) {
  const auto results =
      DrawResults(ThreeRanges(), 200, [](const Config& c) { return Real(c, "x") < 0 ? 0.0 : 1.0; });
  const Importances importances = ImportancesOf(ThreeRanges(), Minimise("loss"), results);
  EXPECT_GT(importances.best, 80);
  EXPECT_GT(SharesOf(importances).at("x"), 0.95);
}

}  // namespace
}  // namespace attune
