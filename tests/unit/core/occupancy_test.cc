#include "core/analysis/occupancy.h"

#include <gtest/gtest.h>

namespace attune {
namespace {

constexpr Time At(int64_t seconds) { return Time{seconds * 1'000'000}; }

TEST(Occupancy, IsTheShareOfTimeInWhichEachGpuIsHeld) {
  const auto occupancy = OccupancyOf({{.begin = At(0), .end = At(50), .gpus = {0}},
                                      {.begin = At(75), .end = At(100), .gpus = {0, 2}}},
                                     8, 4, At(0), At(100));
  EXPECT_DOUBLE_EQ(occupancy.gpus.at(0), 0.75);
  EXPECT_DOUBLE_EQ(occupancy.gpus.at(1), 0);
  EXPECT_DOUBLE_EQ(occupancy.gpus.at(2), 0.25);
  EXPECT_DOUBLE_EQ(occupancy.share, 0.25);
}

TEST(Occupancy, CountsOnlyTheTimeWithinThePeriod) {
  const std::vector<HeldSlots> held = {{.begin = At(0), .end = At(60), .gpus = {0}},
                                       {.begin = At(190), .end = At(500), .gpus = {0}},
                                       {.begin = At(0), .end = At(99), .gpus = {0}}};
  EXPECT_DOUBLE_EQ(OccupancyOf(held, 1, 1, At(100), At(200)).share, 0.1);
}

TEST(Occupancy, PartsOfAGpuAddUp) {
  const auto occupancy =
      OccupancyOf({{.begin = At(0), .end = At(10), .gpus = {0}, .gpu_share = 0.25},
                   {.begin = At(0), .end = At(10), .gpus = {0}, .gpu_share = 0.5}},
                  1, 1, At(0), At(10));
  EXPECT_DOUBLE_EQ(occupancy.share, 0.75);
}

TEST(Occupancy, WithoutGpusItIsTheShareOfTheCpus) {
  const auto occupancy =
      OccupancyOf({{.begin = At(0), .end = At(10), .cpus = 3}}, 4, 0, At(0), At(20));
  EXPECT_DOUBLE_EQ(occupancy.share, 0.375);
  EXPECT_TRUE(occupancy.gpus.empty());
}

TEST(Occupancy, IsAtMostOneAndZeroForAnEmptyPeriod) {
  const std::vector<HeldSlots> held(3, {.begin = At(0), .end = At(10), .gpus = {0}});
  EXPECT_DOUBLE_EQ(OccupancyOf(held, 1, 1, At(0), At(10)).share, 1);
  EXPECT_DOUBLE_EQ(OccupancyOf(held, 1, 1, At(10), At(10)).share, 0);
}

}  // namespace
}  // namespace attune
