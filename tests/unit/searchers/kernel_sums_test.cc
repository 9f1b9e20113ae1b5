#include "searchers/model/kernel_sums.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/random.h"

namespace attune::searchers {
namespace {

// Kernels over two axes of numbers and a list, and points at which to evaluate them.
struct Kernels {
  explicit Kernels(size_t count) {
    RandomStream random(3, TrialNumber(0), "test");
    for (size_t i = 0; i < count; ++i) {
      for (auto& column : columns) column.push_back(static_cast<float>(random.Uniform()));
      columns[2].back() = std::round(columns[2].back() * 2);
      biases.push_back(i % 7 == 0 ? -1e30F
                                  : static_cast<float>(random.Uniform()));  // some are none
    }
    for (int i = 0; i < 3; ++i) points.push_back({random.Uniform(), random.Uniform(), 1});
  }

  std::array<RunningSum, kTile> Sums(Width width) const {
    const ScaledAxis scaled[] = {{columns[0].data(), 3, 0}, {columns[1].data(), 20, 1}};
    const ListedAxis listed[] = {{columns[2].data(), -0.25F, -4, 2}};
    const size_t places[] = {0, 1, 2};
    std::array<RunningSum, kTile> sums;
    Tile(points, places, scaled, listed).Add(biases.data(), 0, biases.size(), sums, width);
    return sums;
  }

  double Sum(const Point& point) const {
    double sum = 0;
    for (size_t i = 0; i < biases.size(); ++i) {
      const double a = 3 * (columns[0][i] - point[0]);
      const double b = 20 * (columns[1][i] - point[1]);
      sum += std::exp2(biases[i] - a * a - b * b - (columns[2][i] == 1 ? 0.25 : 4));
    }
    return sum;
  }

  std::array<std::vector<float>, 3> columns;
  std::vector<float> biases;
  std::vector<Point> points;
};

TEST(KernelSums, AreSumsOfPowersOfTwo) {
  const Kernels kernels(1000);
  const auto sums = kernels.Sums(WidestSupported());
  for (size_t i = 0; i < kernels.points.size(); ++i) {
    const double found = std::exp2(sums[i].most) * sums[i].sum;
    const double expected = kernels.Sum(kernels.points[i]);
    EXPECT_NEAR(found, expected, 1e-5 * expected);
  }
}

TEST(KernelSums, AreTheSameBitForBitAtEveryWidth) {
  if (WidestSupported() == Width::kFour) GTEST_SKIP() << "this processor has one width only";
  for (const size_t count : {8, 248, 256, 264, 1000}) {
    const Kernels kernels(count);
    const auto four = kernels.Sums(Width::kFour);
    const auto eight = kernels.Sums(Width::kEight);
    for (size_t i = 0; i < kTile; ++i) {
      EXPECT_EQ(four[i].most, eight[i].most) << count;
      EXPECT_EQ(four[i].sum, eight[i].sum) << count;
    }
  }
}

}  // namespace
}  // namespace attune::searchers
