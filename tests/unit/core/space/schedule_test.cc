#include "core/space/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/golden.h"

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

Config ConfigWith(double lr, const char* optimizer) {
  return {{"lr", lr},
          {"layer width", int64_t{32}},
          {"optimizer", std::string(optimizer)},
          {"batch", int64_t{128}}};
}

TEST(Schedule, RoundTripsThroughText) {
  const ConfigSchedule schedule = {{Step(4), ConfigWith(0.1 + 0.2, "sgd")},
                                   {Step(12), ConfigWith(1e-7, "a \"b\"; c")}};
  const std::string text = FormatSchedule(schedule);
  EXPECT_THAT(text, HasSubstr("4: lr=0.30000000000000004, \"layer width\"=32, optimizer=sgd"));
  EXPECT_THAT(text, HasSubstr("; 12: lr=1e-07"));
  EXPECT_EQ(ParseSchedule(text, Space()).value(), schedule);
}

TEST(Schedule, ConstantsAreOptionalAndTheOrderIsFree) {
  const auto schedule =
      ParseSchedule(" 4:optimizer=sgd,lr=1, \"layer width\" = 32 ;", Space()).value();
  EXPECT_EQ(schedule, (ConfigSchedule{{Step(4), ConfigWith(1, "sgd")}}));
  EXPECT_TRUE(ParseSchedule("", Space()).value().empty());
}

TEST(Schedule, AnErrorGivesThePlaceAndTheExpectedText) {
  const std::string step_8 = "8: lr=1, \"layer width\"=3, optimizer=sgd; ";
  std::string messages;
  for (const std::string& text :
       {std::string("x: lr=1"), std::string("0: lr=1"), std::string("4 lr=1"), std::string("4: lr"),
        std::string("4: rate=1"), std::string("4: \"lr=1"), std::string("4: lr=1"),
        std::string("4: lr=2, \"layer width\"=32, optimizer=sgd"), step_8 + step_8}) {
    const auto parsed = ParseSchedule(text, Space());
    ASSERT_FALSE(parsed.ok()) << text;
    messages += text + " -> " + parsed.error().message + "\n";
  }
  testing::ExpectGolden("core/space/schedule", messages);
}

}  // namespace
}  // namespace attune
