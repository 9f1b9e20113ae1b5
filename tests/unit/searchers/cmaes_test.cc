#include "searchers/cmaes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "searchers/random.h"
#include "tests/unit/searchers/problems.h"

namespace attune::searchers {
namespace {

using ::testing::HasSubstr;

SweepSpec SpecOf(std::vector<Parameter> parameters, uint64_t seed = 1) {
  return searchers::SpecOf(CmaesEntry(), std::move(parameters), seed);
}

SweepSpec Box(size_t dimensions, uint64_t seed = 1) {
  std::vector<Parameter> parameters;
  for (size_t i = 0; i < dimensions; ++i) {
    parameters.push_back({"x" + std::to_string(i), FloatDomain{.min = -5, .max = 5}, {}});
  }
  return SpecOf(std::move(parameters), seed);
}

// Long and narrow, along the diagonals: 0 at ones.
double Valley(const Config& config) {
  double sum = 0;
  double last = 0;
  double factor = 1;
  for (const auto& [name, value] : config.entries()) {
    const double x = std::get<double>(value) - 1;
    sum += factor * (x - last) * (x - last);
    last = x;
    factor *= 10;
  }
  return sum;
}

TEST(Cmaes, FindsTheEndOfANarrowValley) {
  for (const uint64_t seed : {1, 2, 3}) {
    Cmaes cmaes(Box(5, seed));
    EXPECT_LT(BestOf(cmaes, 3000, Valley), 1e-10) << seed;
  }
}

TEST(Cmaes, FindsItWithThirtyTwoWorkersToo) {
  Cmaes cmaes(Box(5));
  EXPECT_LT(BestOf(cmaes, 6000, Valley, 32), 1e-4);
}

TEST(Cmaes, ToleratesFailuresOfAThirdOfTheTrials) {
  Cmaes cmaes(Box(3));
  int calls = 0;
  EXPECT_LT(BestOf(cmaes, 3000,
                   [&](const Config& config) {
                     return ++calls % 3 == 0 ? std::nan("") : Valley(config);
                   }),
            1e-6);
}

TEST(Cmaes, IsSeparableAboveAHundredDimensions) {
  Cmaes cmaes(Box(120));
  const auto sphere = [](const Config& config) {
    double sum = 0;
    for (const auto& [name, value] : config.entries()) {
      sum += (std::get<double>(value) - 1) * (std::get<double>(value) - 1);
    }
    return sum;
  };
  EXPECT_LT(BestOf(cmaes, 5000, sphere), 1);  // about 1,100 at random
}

TEST(Cmaes, FindsAnOptimumAtTheEndsOfTheRanges) {
  Cmaes cmaes(Box(3));
  const auto slope = [](const Config& config) {
    return Real(config, "x0") + Real(config, "x1") - Real(config, "x2");
  };
  EXPECT_LT(BestOf(cmaes, 400, slope), -14.5);  // of -15; about -13 at random
}

TEST(Cmaes, IntegersNeverGetStuck) {
  std::vector<Parameter> parameters{{"x", FloatDomain{.min = -5, .max = 5}},
                                    {"y", FloatDomain{.min = -5, .max = 5}}};
  for (const char* name : {"a", "b", "c"}) {
    parameters.push_back({name, IntDomain{.min = 0, .max = 20}});
  }
  // The loss depends on the integers only near the best x and y.
  const auto loss = [](const Config& config) {
    double sum = 1000 * (std::pow(Real(config, "x") - 1, 2) + std::pow(Real(config, "y") + 2, 2));
    for (const char* name : {"a", "b", "c"}) {
      sum += std::abs(static_cast<double>(std::get<int64_t>(*config.Find(name)) - 17)) / 100;
    }
    return sum;
  };
  for (const uint64_t seed : {1, 2, 3}) {
    Cmaes cmaes(SpecOf(parameters, seed));
    EXPECT_LT(BestOf(cmaes, 3000, loss), 1e-6) << seed;
  }
}

TEST(Cmaes, LearnsTheBestValueOfAList) {
  Cmaes cmaes(
      SpecOf({{"x", FloatDomain{.min = 0, .max = 1}},
              {"kind", CategoricalDomain{{int64_t{0}, int64_t{1}, int64_t{2}, int64_t{3}}}}}));
  int right = 0;
  BestOf(cmaes, 300, [&](const Config& config) {
    const bool best = std::get<int64_t>(*config.Find("kind")) == 2;
    right += best;
    return std::abs(Real(config, "x") - 0.3) + (best ? 0 : 0.3);
  });
  EXPECT_GT(right, 200);  // 75 by chance
}

TEST(Cmaes, AParameterThatIsAbsentKeepsItsWidth) {
  SweepSpec spec = SpecOf({{"kind", CategoricalDomain{{int64_t{0}, int64_t{1}}}},
                           {"x", FloatDomain{.min = 0, .max = 1}},
                           {"u", FloatDomain{.min = 0, .max = 1}, {{"kind", {int64_t{1}}}}}});
  Cmaes cmaes(spec);
  // Kind 0 is far better, and its trials have no u.
  const auto loss = [](const Config& config) {
    return std::get<int64_t>(*config.Find("kind")) == 0 ? std::abs(Real(config, "x") - 0.4) : 5;
  };
  BestOf(cmaes, 150, loss);
  double low = 1;
  double high = 0;
  for (uint32_t i = 1000; i < 4000; ++i) {
    const Config config = std::get<Proposed>(cmaes.Suggest(ProposalNumber(i))).config;
    if (config.Find("u") == nullptr) continue;
    low = std::min(low, Real(config, "u"));
    high = std::max(high, Real(config, "u"));
  }
  EXPECT_GT(high - low, 0.3);
}

TEST(Cmaes, RestartsElsewhereWithALargerPopulationWhenItStalls) {
  Cmaes cmaes(Box(2));
  // A wide basin with loss 1, and a narrow basin with loss 0.
  const auto basins = [](const Config& config) {
    const double x = Real(config, "x0");
    const double y = Real(config, "x1");
    return std::min(1 + x * x + y * y, 4 * (std::pow(x - 4, 2) + std::pow(y - 4, 2)));
  };
  EXPECT_LT(BestOf(cmaes, 8000, basins), 1e-8);
}

// Golden: other values mean that running sweeps would get other proposals.
TEST(Cmaes, TheBitsOfAProposalAreGolden) {
  Cmaes cmaes(SpecOf({{"x", FloatDomain{.min = -5, .max = 5}},
                      {"lr", FloatDomain{.min = 1e-6, .max = 1, .scale = Scale::kLog}},
                      {"n", IntDomain{.min = 1, .max = 64, .scale = Scale::kLog}}},
                     7));
  BestOf(cmaes, 100, [](const Config& config) {
    return std::abs(Real(config, "x") - 1) + std::abs(std::log10(Real(config, "lr")) + 3) +
           std::abs(static_cast<double>(std::get<int64_t>(*config.Find("n"))) - 9);
  });
  const Config config = std::get<Proposed>(cmaes.Suggest(ProposalNumber(100))).config;
  EXPECT_EQ(FormatReal(Real(config, "x")) + " " + FormatReal(Real(config, "lr")) + " " +
                FormatValue(*config.Find("n")),
            "0.5610206080858919 0.0010210375662685612 10");
}

TEST(Cmaes, LimitsTheInfluenceOfInjectedTrials) {
  Cmaes cmaes(Box(2));
  History history(cmaes);
  for (int i = 0; i < 6; ++i) {  // a population of them, all in a corner
    history.Done(Config{{"x0", 5.0}, {"x1", -5.0}}, static_cast<double>(i));
  }
  double sum = 0;
  for (uint32_t i = 0; i < 200; ++i) {
    const Config config = std::get<Proposed>(cmaes.Suggest(ProposalNumber(i))).config;
    sum += Real(config, "x0");
  }
  EXPECT_GT(sum / 200, 1);
  EXPECT_LT(sum / 200, 4.9);
}

TEST(Cmaes, AFailedGenerationChangesNothing) {
  Cmaes cmaes(Box(2));
  History history(cmaes);
  const auto proposed = [&] {
    return std::get<Proposed>(cmaes.Suggest(ProposalNumber(99))).config;
  };
  const Config before = proposed();
  for (uint32_t i = 0; i < 30; ++i) {
    history.End(history.Create(std::get<Proposed>(cmaes.Suggest(ProposalNumber(i))).config),
                TrialState::kFailed);
  }
  EXPECT_EQ(proposed(), before);
}

TEST(Cmaes, SearchesAnEditedRangeFromTheBestTrial) {
  Cmaes cmaes(Box(1));
  BestOf(cmaes, 100, [](const Config& config) { return std::abs(Real(config, "x0") - 3); });
  SweepSpec spec = SpecOf({{"x0", FloatDomain{.min = 0, .max = 4}}});
  cmaes.Adapt(spec);
  double sum = 0;
  for (uint32_t i = 200; i < 400; ++i) {
    const double x = Real(std::get<Proposed>(cmaes.Suggest(ProposalNumber(i))).config, "x0");
    EXPECT_GE(x, 0);
    EXPECT_LE(x, 4);
    sum += x;
  }
  EXPECT_NEAR(sum / 200, 2.9, 0.3);
}

TEST(Cmaes, RefusesSeveralMetrics) {
  SweepSpec spec = Box(2);
  spec.objectives.push_back(Minimise("size"));
  EXPECT_THAT(CmaesEntry().make(spec).error().message, HasSubstr("searcher.name: cmaes"));
}

}  // namespace
}  // namespace attune::searchers
