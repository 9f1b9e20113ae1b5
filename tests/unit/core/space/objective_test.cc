#include "core/space/objective.h"

#include <limits>

#include <gtest/gtest.h>

namespace attune {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Objective, PrefersTheLargerOrTheSmallerValue) {
  EXPECT_TRUE(Maximise("accuracy").Better(0.9, 0.8));
  EXPECT_FALSE(Maximise("accuracy").Better(0.8, 0.9));
  EXPECT_TRUE(Minimise("loss").Better(0.1, 0.2));
  EXPECT_TRUE(Minimise("loss").Worse(0.2, 0.1));
}

TEST(Objective, NoValueIsBetterThanItself) {
  for (const double value : {0.5, kNaN, kInf, -kInf}) {
    EXPECT_FALSE(Maximise("m").Better(value, value));
    EXPECT_FALSE(Minimise("m").Better(value, value));
  }
}

TEST(Objective, EveryFiniteValueBeatsNanAndBothInfinities) {
  for (const double bad : {kNaN, kInf, -kInf}) {
    for (const Objective& objective : {Maximise("m"), Minimise("m")}) {
      EXPECT_TRUE(objective.Better(-1e300, bad));
      EXPECT_TRUE(objective.Better(1e300, bad));
      EXPECT_FALSE(objective.Better(bad, 1e300));
      EXPECT_FALSE(objective.Better(bad, -1e300));
    }
  }
}

TEST(Objective, NanAndInfinitiesAreEquallyBad) {
  for (const double a : {kNaN, kInf, -kInf}) {
    for (const double b : {kNaN, kInf, -kInf}) {
      EXPECT_FALSE(Maximise("m").Better(a, b));
      EXPECT_FALSE(Minimise("m").Better(a, b));
    }
  }
}

}  // namespace
}  // namespace attune
