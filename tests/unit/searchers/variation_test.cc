#include "searchers/model/variation.h"

#include <set>

#include <gtest/gtest.h>

namespace attune::searchers {
namespace {

Cube Space() {
  return Cube(SearchSpace({{"range", FloatDomain{.min = 0, .max = 1}},
                           {"steps", IntDomain{.min = 1, .max = 4}},
                           {"list", CategoricalDomain{{int64_t{0}, int64_t{1}, int64_t{2}}}},
                           {"log", IntDomain{.min = 1, .max = 100, .scale = Scale::kLog}},
                           {"one", IntDomain{.min = 5, .max = 5}}}));
}

TEST(Mutate, StaysInTheCubeNearTheParent) {
  const Cube cube = Space();
  RandomStream random(1, TrialNumber(0), "variation");
  int near = 0;
  for (int i = 0; i < 1000; ++i) {
    const double to = Mutate(cube, 0, 0.9, 20, random);
    ASSERT_GE(to, 0);
    ASSERT_LE(to, 1);
    near += to > 0.8;
  }
  EXPECT_GT(near, 800);
}

TEST(Mutate, AlwaysChangesAStepOrAListedValue) {
  const Cube cube = Space();
  RandomStream random(2, TrialNumber(0), "variation");
  for (const size_t dimension : {size_t{1}, size_t{2}, size_t{3}}) {
    std::set<double> seen;
    const double from = cube.FromUniform(dimension, 0.99);
    for (int i = 0; i < 200; ++i) {
      const double to = Mutate(cube, dimension, from, 20, random);
      EXPECT_NE(to, from) << dimension;
      EXPECT_EQ(to, cube.Snap(dimension, to));
      seen.insert(to);
    }
    EXPECT_GE(seen.size(), dimension == 2 ? 2u : 1u);
  }
}

TEST(Mutate, TheOnlyValueStays) {
  const Cube cube = Space();
  RandomStream random(3, TrialNumber(0), "variation");
  EXPECT_EQ(Mutate(cube, 4, 0.5, 20, random), 0.5);
}

TEST(CrossOver, IsSymmetricAroundTheMiddleOfBoth) {
  const Cube cube = Space();
  RandomStream random(4, TrialNumber(0), "variation");
  double sum = 0;
  for (int i = 0; i < 4000; ++i) {
    const double to = CrossOver(cube, 0, 0.3, 0.5, 20, random);
    ASSERT_GE(to, 0);
    ASSERT_LE(to, 1);
    sum += to;
  }
  EXPECT_NEAR(sum / 4000, 0.4, 0.01);
}

TEST(CrossOver, ChoosesOneOfTwoListedValues) {
  const Cube cube = Space();
  RandomStream random(5, TrialNumber(0), "variation");
  std::set<double> seen;
  for (int i = 0; i < 50; ++i) seen.insert(CrossOver(cube, 2, 0, 2, 20, random));
  EXPECT_EQ(seen, (std::set<double>{0, 2}));
}

}  // namespace
}  // namespace attune::searchers
