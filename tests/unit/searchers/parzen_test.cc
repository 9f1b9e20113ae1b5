#include "searchers/model/parzen.h"

#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "searchers/model/wide_parzen.h"

namespace attune::searchers {
namespace {

const Axis kRange{.kind = Cube::Kind::kRange};
const Axis kFourValues{.kind = Cube::Kind::kChoice, .count = 4};

// The integral of a density over [0, 1] × a list, by the midpoint rule.
template <class LogDensity>
double Integral(size_t values, LogDensity log_density) {
  constexpr int kParts = 4000;
  double sum = 0;
  for (int i = 0; i < kParts; ++i) {
    for (size_t value = 0; value < values; ++value) {
      sum += std::exp(log_density(Point{(i + 0.5) / kParts, static_cast<double>(value)}));
    }
  }
  return sum / kParts;
}

TEST(RankedParzen, IsADensity) {
  const RankedParzen parzen({kRange, kFourValues}, {{0.02, 1}, {0.5, 3}, {0.55, 3}, {1, 0}});
  EXPECT_NEAR(Integral(4, [&](const Point& point) { return parzen.LogDensity(point); }), 1, 1e-4);
}

void DrawsWhatItsDensitySays(double middle) {
  const RankedParzen parzen({kRange, kFourValues}, {{0.1, 2}, {0.2, 2}, {0.9, 0}});
  RandomStream random(1, TrialNumber(0), "test");
  constexpr int kDraws = 20'000;
  std::map<double, int> lists;
  double below = 0;
  for (int i = 0; i < kDraws; ++i) {
    const Point point = parzen.Draw(random, middle);
    ASSERT_GE(point[0], 0);
    ASSERT_LE(point[0], 1);
    ++lists[point[1]];
    below += point[0] < 0.3;
  }
  double expected_below = 0;
  std::map<double, double> expected;
  constexpr int kParts = 2000;
  for (int i = 0; i < kParts; ++i) {
    for (const double value : {0.0, 1.0, 2.0, 3.0}) {
      const double x = (i + 0.5) / kParts;
      const double mass = std::exp(parzen.LogDensity({x, value}, middle)) / kParts;
      expected[value] += mass;
      if (x < 0.3) expected_below += mass;
    }
  }
  for (const auto& [value, mass] : expected) {
    EXPECT_NEAR(lists[value], mass * kDraws, 5 * std::sqrt(mass * kDraws)) << value;
  }
  EXPECT_NEAR(below / kDraws, expected_below, 0.02);
}

TEST(RankedParzen, DrawsWhatItsDensitySays) { DrawsWhatItsDensitySays(0); }
TEST(RankedParzen, DrawsWhatItsDensitySaysWithAMiddle) { DrawsWhatItsDensitySays(0.6); }

TEST(RankedParzen, TheMiddleIsDenseBetweenTheBestPoints) {
  const RankedParzen parzen({kRange}, {{0.3}, {0.4}, {0.7}});
  const auto density = [&](double middle) {
    return [&, middle](const Point& point) { return parzen.LogDensity(point, middle); };
  };
  EXPECT_NEAR(Integral(1, [&](const Point& point) { return density(1)({point[0]}); }), 1, 1e-4);
  EXPECT_GT(density(1)({0.42}), density(0)({0.42}));
  EXPECT_LT(density(1)({0.95}), density(0)({0.95}));
}

TEST(RankedParzen, TheBestPointWeighsMost) {
  const RankedParzen parzen({kFourValues}, {{0}, {1}, {2}});
  EXPECT_GT(parzen.LogDensity({0}), parzen.LogDensity({1}));
  EXPECT_GT(parzen.LogDensity({1}), parzen.LogDensity({2}));
  EXPECT_GT(parzen.LogDensity({2}), parzen.LogDensity({3}));
}

TEST(RankedParzen, AcceptsEqualPointsAndSinglePoints) {
  RandomStream random(1, TrialNumber(0), "test");
  for (const RankedParzen& parzen :
       {RankedParzen({kRange}, {{0.5}}), RankedParzen({kRange}, {{1}, {1}, {1}})}) {
    EXPECT_TRUE(std::isfinite(parzen.LogDensity({0})));
    const Point point = parzen.Draw(random);
    EXPECT_TRUE(point[0] >= 0 && point[0] <= 1);
  }
}

TEST(WideParzen, IsADensity) {
  WideParzen parzen({kRange, kFourValues});
  EXPECT_NEAR(parzen.LogDensity({0.3, 1}), std::log(0.25), 1e-12);  // the prior
  for (const Point& point : {Point{0.03, 1}, Point{0.5, 3}, Point{0.97, 3}, Point{0.2, 0}}) {
    parzen.Append(point);
    parzen.SetIncluded(parzen.size() - 1, true);
  }
  EXPECT_NEAR(Integral(4, [&](const Point& point) { return parzen.LogDensity(point); }), 1, 1e-3);
}

// The formula in double precision, kernel by kernel.
double Reference(const std::vector<Point>& points, const Point& at) {
  const double rounded = static_cast<double>(points.size());
  const auto dimensions = static_cast<double>(at.size());
  const double width = std::max(0.1 * std::pow(rounded, -1 / (dimensions + 4)), 0.01);
  double sum = 1;
  for (const Point& point : points) {
    double kernel = 1;
    for (size_t j = 0; j < at.size(); ++j) {
      const auto cdf = [&](double z) { return 0.5 * std::erfc(-z * M_SQRT1_2); };
      const double mass = cdf((1 - point[j]) / width) - cdf(-point[j] / width);
      const double z = (at[j] - point[j]) / width;
      kernel *= std::exp(-0.5 * z * z) / (width * std::sqrt(2 * M_PI) * mass);
    }
    sum += kernel;
  }
  return std::log(sum / (rounded + 1));
}

TEST(WideParzen, SumsManyKernelsAsTheFormulaSays) {
  constexpr size_t kPoints = 960;  // has only four binary digits, so it is not rounded
  WideParzen parzen({kRange, kRange, kRange});
  RandomStream random(1, TrialNumber(0), "test");
  std::vector<Point> points;
  for (size_t i = 0; i < kPoints; ++i) {
    points.push_back({random.Uniform(), random.Uniform(), random.Uniform()});
    parzen.Append(points.back());
    parzen.SetIncluded(i, true);
  }
  std::vector<Point> queries;
  for (int i = 0; i < 7; ++i) {
    queries.push_back({random.Uniform(), random.Uniform(), random.Uniform()});
  }
  for (const Point& query : queries) {
    EXPECT_NEAR(parzen.LogDensity(query), Reference(points, query), 1e-3);
  }
}

// Early kernels are in a corner and later ones everywhere, so the first part is not enough.
TEST(WideParzen, FindsTheLargestDifferenceOverAllKernels) {
  RandomStream random(1, TrialNumber(0), "test");
  for (const size_t count : {size_t{3}, size_t{300}, size_t{3000}}) {
    WideParzen parzen({kRange, kRange});
    for (size_t i = 0; i < count; ++i) {
      const double most = i < count / 2 ? 0.2 : 1;
      parzen.Append({random.Uniform(0, most), random.Uniform(0, most)});
      parzen.SetIncluded(i, i % 7 != 0);
    }
    for (int round = 0; round < 20; ++round) {
      std::vector<Point> points;
      std::vector<double> gains;
      size_t expected = 0;
      double highest = -1e300;
      for (size_t i = 0; i < 23; ++i) {
        points.push_back({random.Uniform(), random.Uniform()});
        gains.push_back(random.Uniform(-1, 1));
        const double above = gains[i] - parzen.LogDensity(points[i]);
        if (above > highest) expected = i, highest = above;
      }
      ASSERT_EQ(parzen.LargestDifference(points, gains).index, expected) << count << " " << round;
    }
  }
}

TEST(WideParzen, ChoosesTheFirstOfEqualPoints) {
  WideParzen parzen({kRange});
  parzen.Append({0.2});
  parzen.SetIncluded(0, true);
  EXPECT_EQ(parzen.LargestDifference({{0.2}, {0.7}, {0.7}, {0.7}, {0.7}, {0.7}}, {0, 1, 1, 1, 1, 1})
                .index,
            1u);
}

TEST(WideParzen, ARemovedKernelLeavesNoTrace) {
  WideParzen with({kRange}), without({kRange});
  for (WideParzen* parzen : {&with, &without}) {
    parzen->Append({0.2});
    parzen->SetIncluded(0, true);
    parzen->Append({0.7});
  }
  with.SetIncluded(1, true);
  EXPECT_GT(with.LogDensity({0.7}), without.LogDensity({0.7}));
  with.SetIncluded(1, false);
  for (const double at : {0.7, 0.2}) EXPECT_EQ(with.LogDensity({at}), without.LogDensity({at}));
}

// Kernels 50 widths away in each of 200 dimensions: no sum of exponentials in single precision.
TEST(WideParzen, IsThePriorFarFromEveryKernel) {
  const std::vector<Axis> axes(200, kRange);
  WideParzen parzen(axes);
  parzen.Append(Point(200, 0));
  parzen.SetIncluded(0, true);
  EXPECT_NEAR(parzen.LogDensity(Point(200, 1)), std::log(0.5), 1e-9);
  EXPECT_GT(parzen.LogDensity(Point(200, 0)), 100);
}

}  // namespace
}  // namespace attune::searchers
