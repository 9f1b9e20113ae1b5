#include "core/space/nondominated_sort.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attune {
namespace {

using ::testing::ElementsAre;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(NondominatedSort, SortsFrontsUntilThereAreEnoughRows) {
  const std::vector<double> losses{0, 2, 1, 1, 1, 3, 2, 0, 2, 2};
  EXPECT_THAT(NondominatedSort(losses, 2, 5, FrontOrder::kHypervolume), ElementsAre(1, 0, 3, 2, 4));
  EXPECT_THAT(NondominatedSort(losses, 2, 2, FrontOrder::kHypervolume), ElementsAre(1, 0));
  EXPECT_THAT(NondominatedSort({}, 2, 2, FrontOrder::kHypervolume), ElementsAre());
}

// One metric determines the other.
TEST(NondominatedSort, HandlesAHundredThousandFrontsOfOneRow) {
  constexpr uint32_t kRows = 100'000;
  std::vector<double> losses;
  for (uint32_t row = 0; row < kRows; ++row) losses.insert(losses.end(), {row / 2.0, row / 3.0});
  const auto sorted = NondominatedSort(losses, 2, kRows, FrontOrder::kHypervolume);
  EXPECT_EQ(sorted.size(), kRows);
  EXPECT_TRUE(std::ranges::is_sorted(sorted));
}

TEST(CrowdingDistances, AreInfiniteAtTheEndsAndRelativeBetween) {
  EXPECT_THAT(CrowdingDistances({{0, 40}, {1, 20}, {4, 10}, {8, 0}}),
              ElementsAre(kInfinity, 4 / 8.0 + 30 / 40.0, 7 / 8.0 + 20 / 40.0, kInfinity));
}

TEST(CrowdingDistances, StayFiniteIfTheExtentOverflows) {
  const double most = std::numeric_limits<double>::max();
  EXPECT_EQ(CrowdingDistances({{-most, most}, {0, 0}, {most, -most}})[1], 2);
}

// Boxes of 1.1 - v, by inclusion and exclusion.
TEST(Hypervolume, MeasuresTheDominatedVolume) {
  EXPECT_NEAR(Hypervolume({{0.1, 0.1}}), 1, 1e-12);
  EXPECT_NEAR(Hypervolume({{0.1, 0.6}, {0.6, 0.1}}), 0.5 + 0.5 - 0.25, 1e-12);
  EXPECT_NEAR(Hypervolume({{0.1, 0.1, 0.6}, {0.6, 0.1, 0.1}}), 0.5 + 0.5 - 0.25, 1e-12);
  EXPECT_NEAR(Hypervolume({{0.1, 0.1, 0.6, 0.1}, {0.6, 0.1, 0.1, 0.1}}), 0.75, 1e-12);
  EXPECT_NEAR(Hypervolume({{0.1, 0.1}, {0.6, 0.6}}), 1, 1e-12);
}

}  // namespace
}  // namespace attune
