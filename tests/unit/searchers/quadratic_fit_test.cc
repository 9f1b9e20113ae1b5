#include "searchers/gaussian/quadratic_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/elementary.h"
#include "searchers/model/draw.h"

namespace attune::searchers {
namespace {

const Axis kNumber{.kind = Cube::Kind::kRange, .count = 0};
const Axis kListOfThree{.kind = Cube::Kind::kChoice, .count = 3};

struct Results {
  std::vector<Axis> axes;
  std::vector<Point> points;
  std::vector<double> values;

  std::vector<Point> failed = {};

  std::optional<QuadraticFit> Fit() const {
    return QuadraticFit::Make(axes, points, values, failed);
  }
};

// Random points with their values, the best first.
template <class Loss>
Results DrawResults(const std::vector<Axis>& axes, size_t count, Loss loss, uint64_t seed = 1) {
  RandomStream random(seed, TrialNumber(0), "test");
  std::vector<std::pair<double, Point>> drawn;
  for (size_t i = 0; i < count; ++i) {
    Point point;
    for (const Axis& axis : axes) {
      point.push_back(axis.count == 0 ? random.Uniform()
                                      : UniformPlace(static_cast<double>(axis.count), random));
    }
    drawn.emplace_back(loss(point, random), point);
  }
  std::ranges::sort(drawn);
  Results results{.axes = axes, .points = {}, .values = {}};
  for (const auto& [value, point] : drawn) {
    results.points.push_back(point);
    results.values.push_back(value);
  }
  return results;
}

double Square(double x) { return x * x; }

TEST(QuadraticFit, FindsTheMinimumOfAParabolaInEachCoordinate) {
  const auto fit = DrawResults({kNumber, kNumber}, 8, [](const Point& at, RandomStream&) {
                     return 7 + Square(at[0] - 0.3) + 5 * Square(at[1] - 0.8);
                   }).Fit();
  ASSERT_TRUE(fit);
  EXPECT_GT(fit->explained(), 0.999);
  EXPECT_EQ(fit->results(), 8u);
  RandomStream random(1, TrialNumber(1), "test");
  const Point least = fit->Draw(random, {0.5, 0.5});
  EXPECT_NEAR(least[0], 0.3, 1e-3);
  EXPECT_NEAR(least[1], 0.8, 1e-3);
}

TEST(QuadraticFit, FindsTheMinimumOfANarrowValleyAcrossTheCoordinates) {
  const auto fit = DrawResults({kNumber, kNumber, kNumber}, 25, [](const Point& at, RandomStream&) {
                     return 100 * Square(at[0] + at[1] - 0.9) + Square(at[0] - at[1] - 0.1) +
                            Square(at[2] - 0.2);
                   }).Fit();
  ASSERT_TRUE(fit);
  EXPECT_GT(fit->explained(), 0.999);
  RandomStream random(1, TrialNumber(1), "test");
  const Point least = fit->Draw(random, {0.1, 0.9, 0.5});
  EXPECT_NEAR(least[0] + least[1], 0.9, 1e-2);
  EXPECT_NEAR(least[2], 0.2, 1e-2);
}

TEST(QuadraticFit, DrawsTheEdgeForAMinimumOutsideOrADownwardParabola) {
  const auto fit = DrawResults({kNumber, kNumber}, 12, [](const Point& at, RandomStream&) {
                     return Square(at[0] - 1.5) - Square(at[1] - 0.4);
                   }).Fit();
  ASSERT_TRUE(fit);
  RandomStream random(1, TrialNumber(1), "test");
  const Point least = fit->Draw(random, {0.5, 0.5});
  EXPECT_EQ(least[0], 1);
  EXPECT_EQ(least[1], 1);  // 0.6 from 0.4, where 0 is 0.4 from it
}

TEST(QuadraticFit, DrawsTheBestValueOfAList) {
  const auto fit = DrawResults({kListOfThree, kNumber}, 18, [](const Point& at, RandomStream&) {
                     return (at[0] == 1 ? 0 : 1 + at[0]) + Square(at[1] - 0.5);
                   }).Fit();
  ASSERT_TRUE(fit);
  RandomStream random(1, TrialNumber(1), "test");
  EXPECT_EQ(fit->Draw(random, {2, 0.5})[0], 1);
}

TEST(QuadraticFit, DrawsSpreadWithTheUncertainty) {
  const auto spread = [](double noise) {
    const auto fit = DrawResults({kNumber}, 9, [&](const Point& at, RandomStream& random) {
                       return Square(at[0] - 0.5) + noise * StandardNormal(random);
                     }).Fit();
    std::vector<double> least;
    for (uint32_t i = 0; i < 100; ++i) {
      RandomStream random(1, TrialNumber(i), "draws");
      least.push_back(fit->Draw(random, {0.5})[0]);
    }
    const double mean = std::accumulate(least.begin(), least.end(), 0.0) / 100;
    double squares = 0;
    for (const double x : least) squares += Square(x - mean);
    return std::sqrt(squares / 100);
  };
  EXPECT_GT(spread(0.01), 5 * spread(0.001));
}

TEST(QuadraticFit, AMoreLikelyImprovementHasALargerChance) {
  const auto fit =
      DrawResults({kNumber, kNumber}, 15, [](const Point& at, RandomStream& random) {
        return Square(at[0] - 0.3) + Square(at[1] - 0.8) + 0.01 * StandardNormal(random);
      }).Fit();
  ASSERT_TRUE(fit);
  const double at_best = fit->LogImprovementChance({0.3, 0.8});
  EXPECT_GT(at_best, fit->LogImprovementChance({0.5, 0.8}));
  EXPECT_LE(at_best, 0);
  EXPECT_TRUE(std::isfinite(fit->LogImprovementChance({1, 0})));
}

TEST(QuadraticFit, NoiseIsNotExplained) {
  int fits = 0;
  double explained = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const auto fit = DrawResults(
                         {kNumber, kNumber, kNumber}, 30,
                         [](const Point&, RandomStream& random) { return random.Uniform(); }, seed)
                         .Fit();
    if (!fit) continue;
    ++fits;
    explained += fit->explained();
  }
  EXPECT_LT(fits, 15);
  EXPECT_LT(explained, 0.1 * 40);
}

// A function with as many terms as results passes through all of them.
TEST(QuadraticFit, NoiseIsNotExplainedWithAsManyTermsAsResults) {
  for (const auto& [numbers, results] : {std::pair{2, 6}, {3, 7}, {3, 10}, {5, 11}, {8, 17}}) {
    double explained = 0;
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      const auto fit =
          DrawResults(
              std::vector<Axis>(static_cast<size_t>(numbers), kNumber),
              static_cast<size_t>(results),
              [](const Point&, RandomStream& random) { return random.Uniform(); }, seed)
              .Fit();
      if (fit) explained += fit->explained();
    }
    EXPECT_LT(explained, 0.2 * 40) << numbers << " numbers, " << results << " results";
  }
}

TEST(QuadraticFit, FitsANarrowClusterFarFromTheMiddle) {
  Results results = DrawResults({kNumber, kNumber}, 15, [](const Point& at, RandomStream&) {
    return Square(at[0] - 0.4) + Square(at[1] - 0.7) + at[0] * at[1];
  });
  const auto shrunk = [](double x, double middle) { return 0.93 + 1e-4 * (x - middle); };
  for (Point& point : results.points) point = {shrunk(point[0], 0.5), shrunk(point[1], 0.5)};
  const auto fit = results.Fit();
  ASSERT_TRUE(fit);
  EXPECT_GT(fit->explained(), 0.999);
  RandomStream random(1, TrialNumber(1), "test");
  const Point least = fit->Draw(random, {0.1, 0.1});
  const double y = (0.7 - 0.4 / 2) / (1 - 1.0 / 4);  // where both derivatives are 0
  EXPECT_NEAR(least[1], shrunk(y, 0.5), 1e-6);
  EXPECT_NEAR(least[0], shrunk(0.4 - y / 2, 0.5), 1e-6);
}

TEST(QuadraticFit, DrawsKeepCoordinatesWithoutVariation) {
  Results results = DrawResults({kNumber, kListOfThree, kNumber, kListOfThree}, 20,
                                [](const Point& at, RandomStream&) { return Square(at[0] - 0.3); });
  for (Point& point : results.points) {
    point[1] = 2;
    point[2] = 0.6;
    point[3] = std::min(point[3], 1.0);  // never 2
  }
  const auto fit = results.Fit();
  ASSERT_TRUE(fit);
  for (uint32_t i = 0; i < 50; ++i) {
    RandomStream random(1, TrialNumber(i), "draws");
    const Point least = fit->Draw(random, {0.5, 0, 0.1, 0});
    EXPECT_EQ(least[1], 0);
    EXPECT_EQ(least[2], 0.1);
    EXPECT_NE(least[3], 2);
  }
}

TEST(QuadraticFit, AListedValueWithoutResultsIsUncertain) {
  const auto loss = [](const Point& at, RandomStream&) {
    return std::min(at[1], 1.0) + Square(at[0] - 0.3);
  };
  Results results = DrawResults({kNumber, kListOfThree}, 15, loss, 2);
  for (Point& point : results.points) point[1] = std::min(point[1], 1.0);
  const auto fit = results.Fit();
  ASSERT_TRUE(fit);
  EXPECT_GT(fit->LogImprovementChance({0.9, 2}), std::log(0.1));
  EXPECT_LT(fit->LogImprovementChance({0.9, 1}), std::log(0.1));
}

TEST(QuadraticFit, FailuresLowerTheChanceBehindABorder) {
  Results results = DrawResults({kNumber, kNumber}, 12,
                                [](const Point& at, RandomStream&) { return -at[0] - at[1]; });
  for (Point& point : results.points) point[0] /= 2;
  RandomStream random(1, TrialNumber(2), "test");
  const auto mean_of_draws = [&](const Results& of) {
    const auto fit = of.Fit();
    double sum = 0;
    for (int i = 0; i < 50; ++i) sum += fit->Draw(random, {0.5, 0.5})[0] / 50;
    return sum;
  };
  EXPECT_GT(mean_of_draws(results), 0.9);
  for (size_t i = 0; i < QuadraticFit::FailedMax(results.axes); ++i) {
    results.failed.push_back({0.6 + 0.4 * random.Uniform(), random.Uniform()});
  }
  EXPECT_LT(mean_of_draws(results), 0.6);
}

TEST(QuadraticFit, NeedsEnoughDifferentFiniteResults) {
  const auto sum = [](const Point& at, RandomStream&) { return at[0] + at[1]; };
  EXPECT_FALSE(DrawResults({kNumber, kNumber}, 5, sum).Fit());
  EXPECT_TRUE(DrawResults({kNumber, kNumber}, 6, sum).Fit());
  EXPECT_FALSE(DrawResults({kNumber}, 9, [](const Point&, RandomStream&) { return 1e300; }).Fit());
  Results boundless = DrawResults({kNumber, kNumber}, 9, sum);
  boundless.values.front() = -std::numeric_limits<double>::max();
  boundless.values.back() = std::numeric_limits<double>::max();
  EXPECT_FALSE(boundless.Fit());
}

TEST(QuadraticFit, AcceptsARepeatedPointAndNearlyEqualValues) {
  Results results{.axes = {kNumber, kListOfThree}, .points = {}, .values = {}};
  for (int i = 0; i < 12; ++i) {
    results.points.push_back({0.25, 1});
    results.values.push_back(i < 6 ? 1 : std::nextafter(1, 2));
  }
  const auto fit = results.Fit();
  EXPECT_TRUE(!fit || std::isfinite(fit->LogImprovementChance({0.25, 1})));
}

TEST(QuadraticFit, LimitsTheNumberOfTerms) {
  EXPECT_EQ(QuadraticFit::ResultsMax(std::vector<Axis>(32, kNumber)), 3 * 65u);
  EXPECT_EQ(QuadraticFit::ResultsMax(std::vector<Axis>(33, kNumber)), 0u);
  EXPECT_EQ(QuadraticFit::ResultsMax(std::vector<Axis>(9, kNumber)), 3 * (18 + 36 + 1u));
  EXPECT_EQ(QuadraticFit::ResultsMax({kListOfThree, kNumber}), 3 * 6u);
}

}  // namespace
}  // namespace attune::searchers
