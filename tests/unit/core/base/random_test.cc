#include "core/base/random.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attune {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// Known answers published with the Random123 library of the paper's authors.
TEST(Philox, MatchesThePublishedVectors) {
  EXPECT_THAT(Philox({0, 0, 0, 0}, {0, 0}),
              ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(Philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

// Golden numbers: a change here changes every sweep that a user repeats with its seed.
TEST(RandomStream, DrawsStayTheSameInEveryRelease) {
  RandomStream bits(7, TrialNumber(3), "random/lr");
  EXPECT_EQ(bits.Bits(), 0x2082bd06ab0c17e8u);
  EXPECT_EQ(bits.Bits(), 0x9b406efbfda3bedcu);
  EXPECT_EQ(bits.Bits(), 0x4a31548a56170222u);

  RandomStream reals(7, TrialNumber(3), "random/lr");
  EXPECT_EQ(reals.Uniform(), 0.12699490940853786);
  EXPECT_EQ(reals.Uniform(), 0.6064519276821007);

  RandomStream integers(7, TrialNumber(3), "random/lr");
  EXPECT_EQ(integers.Integer(1, 10), 1);
  EXPECT_EQ(integers.Integer(1, 10), 7);
}

std::vector<uint64_t> Draws(uint64_t seed, uint32_t trial, std::string_view purpose) {
  RandomStream stream(seed, TrialNumber(trial), purpose);
  std::vector<uint64_t> draws;
  for (int i = 0; i < 6; ++i) draws.push_back(stream.Bits());
  return draws;
}

TEST(RandomStream, DependsOnlyOnSeedTrialAndPurpose) {
  EXPECT_EQ(Draws(1, 2, "a"), Draws(1, 2, "a"));
  EXPECT_NE(Draws(1, 2, "a"), Draws(2, 2, "a"));
  EXPECT_NE(Draws(1, 2, "a"), Draws(1, 3, "a"));
  EXPECT_NE(Draws(1, 2, "a"), Draws(1, 2, "b"));
}

TEST(RandomStream, UniformLiesInTheHalfOpenInterval) {
  RandomStream stream(1, TrialNumber(0), "test");
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double unit = stream.Uniform();
    ASSERT_GE(unit, 0.0);
    ASSERT_LT(unit, 1.0);
    sum += unit;
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 0.015);  // five standard errors
}

TEST(RandomStream, UniformNeverRoundsUpToTheEnd) {
  const double high = std::nextafter(1.0, 2.0);  // no double lies between 1 and high
  RandomStream stream(1, TrialNumber(0), "test");
  for (int i = 0; i < 100; ++i) ASSERT_EQ(stream.Uniform(1.0, high), 1.0);
}

TEST(RandomStream, AnEmptyIntervalReturnsItsBound) {
  RandomStream stream(1, TrialNumber(0), "test");
  EXPECT_EQ(stream.Uniform(0.25, 0.25), 0.25);
  EXPECT_EQ(stream.Integer(5, 5), 5);
}

TEST(RandomStream, IntegerReachesBothEndsEquallyOften) {
  std::array<int, 6> counts{};
  RandomStream stream(1, TrialNumber(0), "test");
  for (int i = 0; i < 6'000; ++i) ++counts[static_cast<size_t>(stream.Integer(-2, 3) + 2)];
  EXPECT_THAT(counts, Each(::testing::AllOf(::testing::Gt(850), ::testing::Lt(1150))));
}

TEST(RandomStream, IntegerCoversTheWholeType) {
  const int64_t low = std::numeric_limits<int64_t>::min();
  const int64_t high = std::numeric_limits<int64_t>::max();
  RandomStream stream(1, TrialNumber(0), "test");
  int negative = 0;
  for (int i = 0; i < 1'000; ++i) negative += stream.Integer(low, high) < 0;
  EXPECT_NEAR(negative, 500, 80);
}

// A plain modulo would be biased. A range of 3·2^62 shows it clearly, because the lowest third
// would appear twice as often.
TEST(RandomStream, IntegerHasNoModuloBias) {
  const int64_t third = int64_t{1} << 62;
  RandomStream stream(1, TrialNumber(0), "test");
  int lowest = 0;
  for (int i = 0; i < 6'000; ++i) lowest += stream.Integer(-third, 2 * (third - 1) + 1) < 0;
  EXPECT_NEAR(lowest, 2'000, 185);
}

}  // namespace
}  // namespace attune
