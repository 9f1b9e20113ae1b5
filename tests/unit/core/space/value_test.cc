#include "core/space/value.h"

#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <limits>

#include <gtest/gtest.h>

namespace attune {
namespace {

TEST(FormatReal, IsTheShortestDecimalAndStaysReal) {
  EXPECT_EQ(FormatReal(0.1), "0.1");
  EXPECT_EQ(FormatReal(0.001), "0.001");
  EXPECT_EQ(FormatReal(1.0), "1.0");
  EXPECT_EQ(FormatReal(-0.0), "-0.0");
  EXPECT_EQ(FormatReal(1e-7), "1e-07");
  EXPECT_EQ(FormatReal(1e22), "1e+22");
  EXPECT_EQ(FormatReal(0.1 + 0.2), "0.30000000000000004");
}

TEST(FormatReal, NamesNonFiniteNumbers) {
  const double inf = std::numeric_limits<double>::infinity();

  EXPECT_EQ(FormatReal(std::nan("")), "nan");
  EXPECT_EQ(FormatReal(-std::nan("")), "nan");
  EXPECT_EQ(FormatReal(inf), "inf");
  EXPECT_EQ(FormatReal(-inf), "-inf");
}

TEST(FormatReal, ReadsBackAsTheSameDouble) {
  for (const double value :
       {DBL_MAX, -DBL_MAX, DBL_MIN, DBL_TRUE_MIN, DBL_EPSILON, 1.0 / 3, 123456.789e30}) {
    EXPECT_EQ(std::strtod(FormatReal(value).c_str(), nullptr), value) << FormatReal(value);
  }
}

TEST(FormatValue, WritesTheFormOfTheCommandLine) {
  EXPECT_EQ(FormatValue(true), "true");
  EXPECT_EQ(FormatValue(false), "false");
  EXPECT_EQ(FormatValue(int64_t{-3}), "-3");
  EXPECT_EQ(FormatValue(2.0), "2.0");
  EXPECT_EQ(FormatValue(std::string("sgd")), "sgd");
}

TEST(Value, KnowsItsType) {
  EXPECT_EQ(TypeName(true), "bool");
  EXPECT_EQ(TypeName(int64_t{1}), "int");
  EXPECT_EQ(TypeName(1.0), "float");
  EXPECT_EQ(TypeName(std::string("1")), "text");
}

TEST(Config, KeepsTheOrderOfNames) {
  Config config{{"lr", 0.1}, {"width", int64_t{32}}};
  config.Set("lr", 0.2);
  config.Set("batch", int64_t{8});

  EXPECT_EQ(config, (Config{{"lr", 0.2}, {"width", int64_t{32}}, {"batch", int64_t{8}}}));
  EXPECT_EQ(*config.Find("lr"), Value(0.2));
  EXPECT_EQ(config.Find("momentum"), nullptr);
}

}  // namespace
}  // namespace attune
