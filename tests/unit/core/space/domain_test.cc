#include "core/space/domain.h"

#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace attune {
namespace {

using ::testing::ElementsAre;

std::vector<double> ValuesOf(const FloatDomain& domain) {
  std::vector<double> values;
  for (int64_t i = 0; i < *CountValues(domain); ++i) {
    values.push_back(std::get<double>(ValueAt(domain, i)));
  }
  return values;
}

TEST(Domain, StepsIncludeMaxIfItIsAMultiple) {
  EXPECT_THAT(ValuesOf({.min = 0, .max = 1, .step = 0.5}), ElementsAre(0, 0.5, 1));
  EXPECT_THAT(ValuesOf({.min = 0, .max = 0.9, .step = 0.5}), ElementsAre(0, 0.5));
  EXPECT_THAT(ValuesOf({.min = 2, .max = 2, .step = 0.5}), ElementsAre(2));
}

TEST(Domain, StepsAreShortDecimals) {
  EXPECT_THAT(ValuesOf({.min = 0.1, .max = 0.5, .step = 0.1}),
              ElementsAre(0.1, 0.2, 0.3, 0.4, 0.5));
  EXPECT_THAT(ValuesOf({.min = -0.3, .max = 0.1, .step = 0.1}),
              ElementsAre(-0.3, -0.2, -0.1, 0.0, 0.1));
  EXPECT_THAT(ValuesOf({.min = 1e-7, .max = 3e-7, .step = 1e-7}), ElementsAre(1e-7, 2e-7, 3e-7));
  EXPECT_THAT(ValuesOf({.min = 0, .max = 1, .step = 1.0 / 3}), ElementsAre(0, 1.0 / 3, 2.0 / 3, 1));
}

TEST(Domain, IntegersAreCountedOverTheWholeRange) {
  const Domain width = IntDomain{.min = 8, .max = 64, .step = 8};
  EXPECT_EQ(CountValues(width), 8);
  EXPECT_EQ(ValueAt(width, 0), Value(int64_t{8}));
  EXPECT_EQ(ValueAt(width, 7), Value(int64_t{64}));
  EXPECT_EQ(CountValues(IntDomain{.min = -2, .max = 3, .step = 2}), 3);
}

TEST(Domain, OnlyRealRangesWithoutAStepAreInfinite) {
  EXPECT_EQ(CountValues(FloatDomain{.min = 0, .max = 1}), std::nullopt);
  EXPECT_EQ(CountValues(CategoricalDomain{{true, false}}), 2);
  EXPECT_EQ(CountValues(ConstantDomain{int64_t{1}}), 1);
}

TEST(Domain, AcceptsIntegersForRealsAndReturnsReals) {
  EXPECT_EQ(*Admit(FloatDomain{.min = 0, .max = 2}, int64_t{1}), Value(1.0));
}

TEST(Domain, AcceptsBothBounds) {
  const Domain range = FloatDomain{.min = 0.1, .max = 0.3};
  EXPECT_TRUE(Admit(range, 0.1).ok());
  EXPECT_TRUE(Admit(range, 0.3).ok());
}

TEST(Domain, SnapsToAStepAfterRounding) {
  EXPECT_EQ(*Admit(FloatDomain{.min = 0.1, .max = 0.5, .step = 0.1}, 0.1 + 0.2), Value(0.3));
}

TEST(Domain, ExplainsWhyAValueIsRefused) {
  const Domain real = FloatDomain{.min = 0.1, .max = 0.5, .step = 0.1};
  const Domain integer = IntDomain{.min = 8, .max = 64, .step = 8};
  const Domain choice = CategoricalDomain{{std::string("sgd"), std::string("adamw")}};

  std::string messages;
  const auto refuse = [&](const Domain& domain, const Value& value) {
    const auto admitted = Admit(domain, value);
    ASSERT_FALSE(admitted.ok());
    messages += admitted.error().message + "\n";
  };
  refuse(real, 0.01);
  refuse(real, 2.0);
  refuse(real, 0.26);
  refuse(real, std::numeric_limits<double>::quiet_NaN());
  refuse(real, true);
  refuse(integer, int64_t{12});
  refuse(integer, 16.0);
  refuse(choice, std::string("adam"));
  refuse(ConstantDomain{int64_t{128}}, int64_t{64});
  testing::ExpectGolden("core/space/domain", messages);
}

TEST(Domain, NumbersAreEqualByValueNotByType) {
  EXPECT_TRUE(SameSetting(int64_t{4}, 4.0));
  EXPECT_FALSE(SameSetting(int64_t{1}, true));
  EXPECT_FALSE(SameSetting(int64_t{1}, std::string("1")));
}

}  // namespace
}  // namespace attune
