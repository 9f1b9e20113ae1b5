#include "searchers/model/adapted_normal.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/elementary.h"
#include "searchers/model/draw.h"

namespace attune::searchers {
namespace {

TEST(AdaptedNormal, DrawsAroundItsMeanAsWideAsItsStep) {
  const AdaptedNormal normal({0.5, 0.25}, 0.1, 6);
  EXPECT_EQ(normal.ToPoint({0, 0}), (Point{0.5, 0.25}));
  EXPECT_EQ(normal.ToPoint({1, -2}), (Point{0.5 + 0.1, 0.25 - 0.2}));
  EXPECT_EQ(normal.Deviation(1), 0.1);
}

// By hand, for one dimension, four points, mean 0 and step 1. ln(2.5) - ln(rank) is 0.916, 0.223,
// -0.182, -0.470: the parents weigh 0.8042 and 0.1958.
TEST(AdaptedNormal, MovesTheMeanToTheWeightedParents) {
  AdaptedNormal normal({0}, 1, 4);
  ASSERT_TRUE(normal.Learn({{{1}}, {{2}}, {{-1}}, {{-2}}}));
  EXPECT_NEAR(normal.mean()[0], 0.8042 * 1 + 0.1958 * 2, 1e-4);
}

// By hand, for the same case: μ_eff = 1.4597, c_σ = 0.4638, d_σ = 1.4638; the path is √(c_σ(2 -
// c_σ)μ_eff)·1.1958 = 1.2194 long, and 0.7976 (1 - 1/4 + 1/21) is expected.
TEST(AdaptedNormal, TheStepDependsOnTheLengthOfItsPath) {
  AdaptedNormal normal({0}, 1, 4);
  ASSERT_TRUE(normal.Learn({{{1}}, {{2}}, {{-1}}, {{-2}}}));
  EXPECT_NEAR(normal.step(), std::exp(0.4638 / 1.4638 * (1.2194 / 0.7976 - 1)), 1e-3);
}

TEST(AdaptedNormal, AnInjectedPointIsShortened) {
  AdaptedNormal near({0}, 1, 4);
  AdaptedNormal far({0}, 1, 4);
  const double most = 1 + 2.0 / 3;  // √n + 2n/(n + 2)
  ASSERT_TRUE(near.Learn({{{most}}, {{0.5}}, {{-1}}, {{-2}}}));
  ASSERT_TRUE(far.Learn({{{1000}, true}, {{0.5}}, {{-1}}, {{-2}}}));
  EXPECT_EQ(far.mean(), near.mean());
  EXPECT_EQ(far.step(), near.step());
}

TEST(AdaptedNormal, TakesTheShapeOfAValley) {
  AdaptedNormal normal({3, 1}, 1, 6);
  RandomStream random(1, TrialNumber(0), "valley");
  const auto loss = [](const Point& at) {  // ten times as long as wide, along the diagonal
    return 100 * std::pow(at[0] - at[1], 2) + std::pow(at[0] + at[1], 2);
  };
  for (int generation = 0; generation < 40; ++generation) {
    std::vector<AdaptedNormal::Sample> samples;
    for (int i = 0; i < 6; ++i) {
      samples.push_back({normal.ToPoint({StandardNormal(random), StandardNormal(random)})});
    }
    std::ranges::sort(samples, {}, [&](const auto& sample) { return loss(sample.point); });
    ASSERT_TRUE(normal.Learn(samples));
  }
  const Point mean = normal.mean();
  const Point along = normal.ToPoint({1, 0});
  EXPECT_NEAR((along[1] - mean[1]) / (along[0] - mean[0]), 1, 0.2);
  EXPECT_LT(loss(mean), 1e-3);
}

TEST(AdaptedNormal, ARestoredDimensionIsAsWideAsBefore) {
  AdaptedNormal normal({0, 0}, 1, 4);
  const AdaptedNormal before = normal;
  ASSERT_TRUE(normal.Learn({{{1, 1}}, {{2, 1}}, {{-1, 0}}, {{-2, 3}}}));
  normal.RestoreDimension(1, before);
  EXPECT_EQ(normal.mean()[1], 0);
  EXPECT_NE(normal.mean()[0], 0);
  const Point low = normal.ToPoint({0, -1});
  const Point high = normal.ToPoint({0, 1});
  EXPECT_GT(high[1] - low[1], 1);
  EXPECT_LE(high[1] - low[1], 2 + 1e-9);
}

TEST(AdaptedNormal, NeighboursOfAnInnerCellKeepTheirProbability) {
  AdaptedNormal normal({0.45}, 1e-6, 4);
  normal.KeepMargin(0, {0.4, 0.5}, 0.1);
  // The probability of a side is the tail beyond the end of the cell.
  const double deviation = normal.ToPoint({1})[0] - normal.mean()[0];
  EXPECT_NEAR(NormalCdf((0.4 - normal.mean()[0]) / deviation), 0.05, 1e-9);
  EXPECT_NEAR(NormalCdf((normal.mean()[0] - 0.5) / deviation), 0.05, 1e-9);
}

TEST(AdaptedNormal, AtAnEndTheMeanStaysNearTheOnlyNeighbour) {
  AdaptedNormal normal({0.01}, 1e-3, 4);
  normal.KeepMargin(0, {0, 0.1}, 0.1);
  EXPECT_NEAR(NormalCdf((normal.mean()[0] - 0.1) / 1e-3), 0.1, 1e-9);
}

TEST(AdaptedNormal, WideDistributionsAreNotChanged) {
  AdaptedNormal normal({0.45}, 0.2, 4);
  normal.KeepMargin(0, {0.4, 0.5}, 0.1);
  EXPECT_EQ(normal.mean()[0], 0.45);
  EXPECT_EQ(normal.ToPoint({1})[0], 0.45 + 0.2);
}

TEST(AdaptedNormal, RefusesBytesOfAnotherSize) {
  ArchiveWriter bytes;
  bytes(Point{0.5, 0.5}, Point{1.0}, 0.1, size_t{6}, std::vector<double>{1, 0, 1}, Point{0, 0},
        Point{0, 0}, 1.0);
  const std::string saved = bytes.Take();
  ArchiveReader archive(saved);
  AdaptedNormal normal({0, 0}, 1, 6);
  archive(normal);
  EXPECT_FALSE(archive.ok());
}

TEST(NormalQuantile, IsTheInverseOfTheTail) {
  for (const double tail : {0.5, 0.3, 0.05, 1e-4, 1e-12}) {
    EXPECT_NEAR(NormalCdf(-NormalQuantile(tail)) / tail, 1, 1e-9) << tail;
  }
  EXPECT_NEAR(NormalQuantile(0.025), 1.959963984540054, 1e-12);
}

}  // namespace
}  // namespace attune::searchers
