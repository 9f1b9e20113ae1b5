#include "core/space/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attune {
namespace {

using ::testing::HasSubstr;

SearchSpace Space() {
  return SearchSpace(
      {{.name = "lr", .domain = FloatDomain{.min = 0, .max = 1}},
       {.name = "layer width", .domain = IntDomain{.min = 1, .max = 64}},
       {.name = "optimizer",
        .domain = CategoricalDomain{{std::string("sgd"), std::string("a \"b\"; c")}}},
       {.name = "batch", .domain = ConstantDomain{Value(int64_t{128})}}});
}

Config With(double lr, const char* optimizer) {
  return {{"lr", lr},
          {"layer width", int64_t{32}},
          {"optimizer", std::string(optimizer)},
          {"batch", int64_t{128}}};
}

TEST(Schedule, RoundTripsThroughText) {
  const ConfigSchedule schedule = {{Step(4), With(0.1 + 0.2, "sgd")},
                                   {Step(12), With(1e-7, "a \"b\"; c")}};
  const std::string text = FormatSchedule(schedule);
  EXPECT_THAT(text, HasSubstr("4: lr=0.30000000000000004, \"layer width\"=32, optimizer=sgd"));
  EXPECT_THAT(text, HasSubstr("; 12: lr=1e-07"));
  EXPECT_EQ(ParseSchedule(text, Space()).value(), schedule);
}

TEST(Schedule, ConstantsAreOptionalAndTheOrderIsFree) {
  const auto schedule =
      ParseSchedule(" 4:optimizer=sgd,lr=1, \"layer width\" = 32 ;", Space()).value();
  EXPECT_EQ(schedule, (ConfigSchedule{{Step(4), With(1, "sgd")}}));
  EXPECT_TRUE(ParseSchedule("", Space()).value().empty());
}

TEST(Schedule, AnErrorGivesThePlaceAndTheExpectedText) {
  const auto fault = [](const char* text) { return ParseSchedule(text, Space()).error().message; };
  EXPECT_THAT(fault("x: lr=1"), HasSubstr("at character 2: expected a step"));
  EXPECT_THAT(fault("0: lr=1"), HasSubstr("expected a step"));
  EXPECT_THAT(fault("4 lr=1"), HasSubstr("at character 3: expected `:`"));
  EXPECT_THAT(fault("4: lr"), HasSubstr("expected `=`"));
  EXPECT_THAT(fault("4: rate=1"), HasSubstr("there is no parameter rate"));
  EXPECT_THAT(fault("4: \"lr=1"), HasSubstr("a quote is not closed"));
  EXPECT_THAT(fault("4: lr=1"), HasSubstr("at step 4, "));  // the others are missing
  EXPECT_THAT(fault("4: lr=2, \"layer width\"=32, optimizer=sgd"), HasSubstr("at step 4, "));
  const std::string whole = "8: lr=1, \"layer width\"=3, optimizer=sgd; ";
  EXPECT_THAT(fault((whole + whole).c_str()), HasSubstr("above the one before"));
}

}  // namespace
}  // namespace attune
