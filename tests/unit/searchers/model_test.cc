#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/elementary.h"
#include "core/base/random.h"
#include "core/space/domain.h"
#include "searchers/model/cube.h"
#include "searchers/model/sobol_sequence.h"

namespace attune::searchers {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

Value Text(const char* text) { return std::string(text); }

TEST(Elementary, ExpAndLogAreExactToTwoUnitsInTheLastPlace) {
  constexpr double kTwoUnits = 2 * std::numeric_limits<double>::epsilon();
  for (double x = -708; x < 709.7; x += 0.173) {
    const double power = std::exp(x);
    EXPECT_NEAR(Exp(x) / power, 1, kTwoUnits) << x;
    EXPECT_NEAR(Log(power) / std::log(power), 1, kTwoUnits) << x;
  }
  for (double x = 0.5; x < 2; x += 0.00137) EXPECT_NEAR(Log(x) / std::log(x), 1, kTwoUnits) << x;
}

// The exact bits do not matter, but they must be the same on every machine.
TEST(Elementary, TheBitsAreGolden) {
  EXPECT_EQ(Exp(1), 0x1.5bf0a8b14576ap+1);
  EXPECT_EQ(Exp(-0.7), 0x1.fc80db9dd5542p-2);
  EXPECT_EQ(Log(10), 0x1.26bb1bbb55516p+1);
  EXPECT_EQ(NormalCdf(1), 0x1.aec4bd120d37ep-1);
  EXPECT_EQ(NormalCdf(-5), 0x1.33ca2f213382dp-22);
}

TEST(Elementary, EndsAreTheMathematicalLimits) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Exp(kInf), kInf);
  EXPECT_EQ(Exp(-kInf), 0);
  EXPECT_EQ(Log(0), -kInf);
  EXPECT_EQ(Log(kInf), kInf);
  EXPECT_TRUE(std::isnan(Log(-1)));
  EXPECT_TRUE(std::isnan(Exp(std::nan(""))));
  EXPECT_NEAR(Log(5e-324), -744.4400719213812, 1e-12);
  EXPECT_EQ(NormalCdf(-60), 0);
  EXPECT_EQ(NormalCdf(60), 1);
}

// The vectorised sum must equal the scalar sum bit for bit, so that proposals do not change.
TEST(Elementary, LogOfSumEqualsTheLogarithmOfTheSumOfExponentials) {
  RandomStream random(1, TrialNumber(0), "test");
  for (size_t count = 1; count < 40; ++count) {
    std::vector<double> logs(count);
    for (double& log : logs) log = random.Uniform(-60, 60);
    const double most = *std::ranges::max_element(logs);
    double sum = 0;
    for (const double log : logs) sum += Exp(log - most);
    EXPECT_EQ(LogOfSum(logs), most + Log(sum)) << count;
  }
  EXPECT_EQ(LogOfSum(std::vector<double>{-5000, 3, -1e300}), 3);
}

TEST(Elementary, TheNormalDistributionKeepsTheDigitsOfItsTails) {
  for (double z = -36; z < 8; z += 0.0917) {
    EXPECT_NEAR(NormalCdf(z) / (0.5 * std::erfc(-z * M_SQRT1_2)), 1, 1e-12) << z;
  }
  EXPECT_NEAR(NormalMass(20, 21) / NormalCdf(-20), 1, 1e-8);
}

SearchSpace MixedSpace() {
  return SearchSpace({
      {"momentum", FloatDomain{.min = 0, .max = 0.9}, {{"optimizer", {Text("sgd")}}}},
      {"optimizer", CategoricalDomain{{Text("sgd"), Text("adamw"), int64_t{3}}}},
      {"lr", FloatDomain{.min = 1e-5, .max = 1, .scale = Scale::kLog}},
      {"width", IntDomain{.min = 1, .max = 600, .scale = Scale::kLog, .step = 3}},
      {"dropout", FloatDomain{.min = 0.1, .max = 0.5, .step = 0.1}},
      {"layers", IntDomain{.min = -2, .max = 40}},
      {"nesterov", CategoricalDomain{{true, false}}, {{"optimizer", {Text("sgd")}}}},
      {"seed", ConstantDomain{int64_t{7}}},
  });
}

TEST(Cube, HasADimensionPerVariableParameterAndAGroupPerCondition) {
  const Cube cube(MixedSpace());
  ASSERT_EQ(cube.size(), 7u);
  EXPECT_EQ(cube.groups(), 2u);
  std::vector<size_t> groups;
  for (const auto& dimension : cube.dimensions()) groups.push_back(dimension.group);
  EXPECT_EQ(cube.Name(0), "optimizer");  // before momentum, which depends on it
  EXPECT_THAT(groups, ElementsAre(0, 1, 0, 0, 0, 0, 1));
}

TEST(Cube, RestoresEveryCountableValueExactly) {
  const Cube cube(MixedSpace());
  for (size_t i = 0; i < cube.size(); ++i) {
    const Domain& domain = cube.space().parameters()[cube.dimensions()[i].parameter].domain;
    for (int64_t k = 0; k < CountValues(domain).value_or(0); ++k) {
      Config config{{"optimizer", Text("sgd")}, {"momentum", 0.1},   {"lr", 0.1},
                    {"width", int64_t{1}},      {"dropout", 0.1},    {"layers", int64_t{0}},
                    {"nesterov", true},         {"seed", int64_t{7}}};
      config.Set(cube.Name(i), ValueAt(domain, k));
      if (*config.Find("optimizer") != Text("sgd")) {
        config = {{"optimizer", *config.Find("optimizer")},
                  {"lr", 0.1},
                  {"width", int64_t{1}},
                  {"dropout", 0.1},
                  {"layers", int64_t{0}},
                  {"seed", int64_t{7}}};
      }
      const auto point = cube.Place(config);
      ASSERT_TRUE(point) << cube.Name(i) << " " << k;
      EXPECT_EQ(cube.ToValue(i, (*point)[i]), ValueAt(domain, k));
      EXPECT_EQ(cube.Snap(i, (*point)[i]), (*point)[i]);
    }
  }
}

TEST(Cube, RestoresRangesToAFewUnitsInTheLastPlace) {
  const Cube cube(SearchSpace({{"a", FloatDomain{.min = 1e-9, .max = 1e3, .scale = Scale::kLog}},
                               {"b", FloatDomain{.min = -1e300, .max = 1e300 / 2}}}));
  RandomStream random(1, TrialNumber(0), "test");
  for (int i = 0; i < 1000; ++i) {
    const double u = random.Uniform();
    const Config config = cube.Build([&](size_t) { return u; });
    const auto point = cube.Place(config);
    ASSERT_TRUE(point);
    EXPECT_THAT(*point, ElementsAre(DoubleNear(u, 1e-14), DoubleNear(u, 1e-14)));
  }
  EXPECT_EQ(cube.ToValue(0, 0), Value(1e-9));
  EXPECT_EQ(cube.ToValue(0, 1), Value(1e3));
  EXPECT_EQ(cube.ToValue(0, 7), Value(1e3));
}

TEST(Cube, UsesALinearScaleIfLogarithmsAreTooSimilar) {
  const Cube cube(SearchSpace(
      {{"n",
        IntDomain{
            .min = 100'000'000'000'000'000, .max = 100'000'000'000'000'003, .scale = Scale::kLog}},
       {"x", FloatDomain{.min = 1e9, .max = 1e9 + 5e-7, .scale = Scale::kLog, .step = 1e-7}}}));
  for (size_t i = 0; i < cube.size(); ++i) {
    const auto count = static_cast<double>(cube.dimensions()[i].count);
    EXPECT_EQ(cube.Snap(i, 0.3), (std::floor(0.3 * count) + 0.5) / count);
  }
  EXPECT_EQ(cube.ToValue(0, 0.6), Value(int64_t{100'000'000'000'000'002}));
}

TEST(Cube, AbsentParametersHaveNoCoordinate) {
  const Cube cube(MixedSpace());
  const Config config = cube.Build([](size_t) { return 1.0; });  // optimizer: adamw
  EXPECT_EQ(config.Find("momentum"), nullptr);
  const auto point = cube.Place(config);
  ASSERT_TRUE(point);
  EXPECT_TRUE(std::isnan((*point)[1]));
  EXPECT_FALSE(std::isnan((*point)[0]));
}

TEST(Cube, AConfigurationOutsideTheSpaceHasNoPoint) {
  const Cube cube(SearchSpace({{"a", IntDomain{.min = 0, .max = 4}}}));
  EXPECT_TRUE(cube.Place({{"a", int64_t{4}}}));
  EXPECT_FALSE(cube.Place({{"a", int64_t{5}}}));
  EXPECT_FALSE(cube.Place({{"a", Text("4")}}));
  EXPECT_FALSE(cube.Place({{"a", int64_t{4}}, {"b", int64_t{1}}}));
  EXPECT_FALSE(cube.Place({}));
}

TEST(Cube, CellsOnALogScaleReachToTheNextStep) {
  const Cube cube(SearchSpace({{"a", IntDomain{.min = 1, .max = 7, .scale = Scale::kLog}}}));
  EXPECT_EQ(cube.ToValue(0, 0.33), Value(int64_t{1}));
  EXPECT_EQ(cube.ToValue(0, 0.34), Value(int64_t{2}));
  EXPECT_EQ(cube.ToValue(0, 1.0), Value(int64_t{7}));
}

TEST(Cube, CellsAreAdjacent) {
  const Cube cube(SearchSpace({{"a", IntDomain{.min = 1, .max = 4}},
                               {"b", IntDomain{.min = 1, .max = 7, .scale = Scale::kLog}},
                               {"c", FloatDomain{.min = 0, .max = 9}}}));
  EXPECT_EQ(cube.CellAround(0, 0.3), (std::pair{0.25, 0.5}));
  EXPECT_EQ(cube.CellAround(0, 7), (std::pair{0.75, 1.0}));
  EXPECT_NEAR(cube.CellAround(1, 0.1).second, 1.0 / 3, 1e-12);  // from 1 to 2, of 1 to 8
  EXPECT_EQ(cube.CellAround(1, 0.4).first, cube.CellAround(1, 0.1).second);
  EXPECT_EQ(cube.CellAround(2, 0.3), (std::pair{0.0, 1.0}));
}

TEST(Cube, TheWidestIntegersAndSinglePointsStayInside) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max() - 1;
  const Cube cube(SearchSpace({{"a", IntDomain{.min = 1, .max = kMax, .scale = Scale::kLog}},
                               {"b", FloatDomain{.min = 2, .max = 2}},
                               {"c", IntDomain{.min = kMax, .max = kMax}}}));
  for (const double u : {0.0, 0.5, 1.0}) {
    const Config config = cube.Build([&](size_t) { return u; });
    EXPECT_GE(std::get<int64_t>(*config.Find("a")), 1);
    EXPECT_EQ(*config.Find("b"), Value(2.0));
    EXPECT_EQ(*config.Find("c"), Value(kMax));
    EXPECT_TRUE(cube.Place(config));
  }
}

TEST(Cube, FindsTheFirstConfigurationThatIsWanted) {
  const Cube cube(SearchSpace({{"a", IntDomain{.min = 0, .max = 2}},
                               {"b", CategoricalDomain{{true, false}}, {{"a", {int64_t{1}}}}}}));
  ASSERT_TRUE(cube.IsFinite());
  std::vector<size_t> sizes;
  EXPECT_FALSE(cube.FindFirst([&](const Config& config) {
    sizes.push_back(config.entries().size());
    return false;
  }));
  EXPECT_THAT(sizes, ElementsAre(1, 2, 2, 1));
  EXPECT_EQ(cube.FindFirst([](const Config& c) { return c.entries().size() == 2; }),
            Config({{"a", int64_t{1}}, {"b", true}}));
}

// The points of other implementations, which list them in the order of the Gray code.
TEST(SobolSequence, HasTheDirectionsOfJoeAndKuo) {
  const SobolSequence sequence(kSobolDimensions, 1);
  const auto points = [&](size_t dimension) {
    std::vector<double> values;
    for (uint32_t i = 0; i < 8; ++i) {
      values.push_back(sequence.Unscrambled(dimension, i ^ (i >> 1)) * 0x1p-32);
    }
    return values;
  };
  EXPECT_THAT(points(0), ElementsAre(0, 0.5, 0.75, 0.25, 0.375, 0.875, 0.625, 0.125));
  EXPECT_THAT(points(1), ElementsAre(0, 0.5, 0.25, 0.75, 0.375, 0.875, 0.125, 0.625));
  EXPECT_THAT(points(2), ElementsAre(0, 0.5, 0.25, 0.75, 0.625, 0.125, 0.875, 0.375));
  EXPECT_THAT(points(5), ElementsAre(0, 0.5, 0.75, 0.25, 0.125, 0.625, 0.875, 0.375));
  EXPECT_THAT(points(37), ElementsAre(0, 0.5, 0.25, 0.75, 0.875, 0.375, 0.625, 0.125));
  EXPECT_THAT(points(199), ElementsAre(0, 0.5, 0.25, 0.75, 0.875, 0.375, 0.625, 0.125));
}

TEST(SobolSequence, ScrambledPointsStillFillEveryIntervalOnce) {
  const SobolSequence sequence(kSobolDimensions + 1, 42);
  for (const size_t dimension : {size_t{0}, size_t{1}, size_t{17}, kSobolDimensions - 1}) {
    std::set<int> cells;
    for (uint32_t i = 0; i < 256; ++i) {
      cells.insert(static_cast<int>(sequence.Coordinate(dimension, i) * 256));
    }
    EXPECT_EQ(cells.size(), 256u) << dimension;
  }
}

TEST(SobolSequence, ScrambledPairsStillFillEveryRectangleOnce) {
  const SobolSequence sequence(2, 3);
  std::set<std::pair<int, int>> cells;
  for (uint32_t i = 0; i < 64; ++i) {
    cells.emplace(static_cast<int>(sequence.Coordinate(0, i) * 8),
                  static_cast<int>(sequence.Coordinate(1, i) * 8));
  }
  EXPECT_EQ(cells.size(), 64u);
}

TEST(SobolSequence, AnotherSeedGivesAnotherSequence) {
  EXPECT_NE(SobolSequence(1, 1).Coordinate(0, 0), SobolSequence(1, 2).Coordinate(0, 0));
  EXPECT_NE(SobolSequence(2, 1).Coordinate(0, 0), SobolSequence(2, 1).Coordinate(1, 0));
}

TEST(SobolSequence, DimensionsBeyondTheTableAreUniformToo) {
  const SobolSequence sequence(kSobolDimensions + 2, 1);
  double sum = 0;
  for (uint32_t i = 0; i < 1000; ++i) sum += sequence.Coordinate(kSobolDimensions + 1, i);
  EXPECT_NEAR(sum / 1000, 0.5, 0.05);
  EXPECT_NE(sequence.Coordinate(kSobolDimensions, 0), sequence.Coordinate(kSobolDimensions + 1, 0));
}

}  // namespace
}  // namespace attune::searchers
