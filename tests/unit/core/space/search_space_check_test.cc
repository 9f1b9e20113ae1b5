#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/space/search_space.h"

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr double kInf = std::numeric_limits<double>::infinity();

Value Text(const char* text) { return std::string(text); }

// "lr.max: 0.001 is below min 0.1"
std::vector<std::string> Faults(const std::vector<Parameter>& parameters) {
  std::vector<std::string> lines;
  for (const SpaceFault& fault : SearchSpace::Check(parameters)) {
    lines.push_back(fault.parameter + "." + fault.key + ": " + fault.message);
  }
  return lines;
}

TEST(SearchSpaceCheck, AValidSpaceHasNoFault) {
  EXPECT_THAT(Faults({{"lr", FloatDomain{.min = 1e-5, .max = 0.1, .scale = Scale::kLog}},
                      {"dropout", FloatDomain{.min = 0, .max = 0.5, .step = 0.1}},
                      {"layers", IntDomain{.min = 2, .max = 8}},
                      {"optimizer", CategoricalDomain{{Text("sgd"), Text("adamw")}}},
                      {"batch", ConstantDomain{int64_t{128}}},
                      {"momentum",
                       FloatDomain{.min = 0.9, .max = 0.9},
                       {{"optimizer", {Text("sgd")}}, {.parent = "layers", .at_least = 4}}}}),
              IsEmpty());
}

TEST(SearchSpaceCheck, AnEmptySpaceIsOneConfiguration) { EXPECT_THAT(Faults({}), IsEmpty()); }

TEST(SearchSpaceCheck, AllFaultsAreReportedTogether) {
  EXPECT_THAT(Faults({{"lr", FloatDomain{.min = 0.1, .max = 0.001}},
                      {"decay", FloatDomain{.min = 0, .max = 1, .scale = Scale::kLog}},
                      {"width", IntDomain{.min = 8, .max = 4, .step = 0}},
                      {"optimizer", CategoricalDomain{}}}),
              ElementsAre("lr.max: 0.001 is below min 0.1",
                          "decay.min: log scale needs min > 0; raise min or use scale: linear",
                          "width.max: 4 is below min 8", "width.step: must be 1 or more",
                          "optimizer.values: is empty; list at least one value"));
}

TEST(SearchSpaceCheck, AParameterMayNameAParentOnce) {
  EXPECT_THAT(Faults({{"layers", IntDomain{.min = 2, .max = 8}},
                      {"skip",
                       FloatDomain{.min = 0, .max = 1},
                       {{.parent = "layers", .at_least = 4}, {.parent = "layers", .at_most = 6}}}}),
              ElementsAre("skip.when: names 'layers' twice; join the two"));
}

TEST(SearchSpaceCheck, BoundsMustBeFinite) {
  EXPECT_THAT(Faults({{"lr", FloatDomain{.min = -kInf, .max = kInf}}}),
              ElementsAre("lr.min: must be a finite number", "lr.max: must be a finite number"));
  EXPECT_THAT(
      Faults({{"lr", FloatDomain{.min = -1.7e308, .max = 1.7e308}}}),
      ElementsAre("lr.max: the range is wider than a number can say; bring max and min together"));
}

TEST(SearchSpaceCheck, StepsOfARealRangeMustBePositiveAndDistinct) {
  EXPECT_THAT(Faults({{"lr", FloatDomain{.min = 0, .max = 1, .step = 0}}}),
              ElementsAre("lr.step: must be above 0; raise it or leave it out"));
  EXPECT_THAT(Faults({{"lr", FloatDomain{.min = 0, .max = 1, .step = 0x1p-53}}}), IsEmpty());
  EXPECT_THAT(
      Faults({{"lr", FloatDomain{.min = 0, .max = 1, .step = 0x1p-54}}}),
      ElementsAre("lr.step: is too small to tell its steps apart; raise it or leave it out"));
}

TEST(SearchSpaceCheck, AnIntegerRangeMustNotOverflow) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(Faults({{"n", IntDomain{.min = 0, .max = kMax - 1}}}), IsEmpty());
  EXPECT_THAT(
      Faults({{"n", IntDomain{.min = -1, .max = kMax - 1}}}),
      ElementsAre("n.max: the range is wider than an integer can say; bring max and min together"));
}

TEST(SearchSpaceCheck, DuplicateValuesAreRefused) {
  EXPECT_THAT(Faults({{"n", CategoricalDomain{{int64_t{1}, Text("1"), 1.0, true}}}}),
              ElementsAre("n.values: '1.0' is listed twice; remove one"));
}

TEST(SearchSpaceCheck, ListedNumbersMustBeFinite) {
  EXPECT_THAT(
      Faults({{"a", CategoricalDomain{{0.5, kInf}}}, {"b", ConstantDomain{-kInf}}}),
      ElementsAre("a.values: inf is not a finite number", "b.value: -inf is not a finite number"));
}

TEST(SearchSpaceCheck, DuplicateNamesAreRefused) {
  EXPECT_THAT(Faults({{"lr", ConstantDomain{0.1}}, {"lr", ConstantDomain{0.2}}, {"", {}}}),
              UnorderedElementsAre("lr.: is defined twice; rename or remove one",
                                   ".: a parameter needs a name"));
}

std::vector<std::string> FaultsOfCondition(Domain parent, Condition condition) {
  condition.parent = "p";
  return Faults({{"p", std::move(parent)}, {"c", ConstantDomain{true}, {condition}}});
}

TEST(SearchSpaceCheck, AConditionMustNameAParameter) {
  EXPECT_THAT(Faults({{"optimizer", ConstantDomain{Text("sgd")}},
                      {"momentum", ConstantDomain{0.9}, {{"optimiser", {Text("sgd")}}}}}),
              ElementsAre("momentum.when: 'optimiser' is no parameter; there are: optimizer, "
                          "momentum"));
}

TEST(SearchSpaceCheck, AConditionMustHaveOneForm) {
  EXPECT_THAT(FaultsOfCondition(IntDomain{.min = 0, .max = 9}, {}),
              ElementsAre("c.when: says nothing of 'p'; give values or gte / lte"));
  EXPECT_THAT(
      FaultsOfCondition(IntDomain{.min = 0, .max = 9}, {.any_of = {int64_t{1}}, .at_least = 1}),
      ElementsAre("c.when: says both values and bounds of 'p'; give values or gte / lte"));
}

TEST(SearchSpaceCheck, AConditionMustNameAValueOfItsParent) {
  const Domain choice = CategoricalDomain{{Text("sgd"), Text("adamw")}};
  EXPECT_THAT(FaultsOfCondition(choice, {.any_of = {Text("sgd")}}), IsEmpty());
  EXPECT_THAT(FaultsOfCondition(choice, {.any_of = {Text("sgd"), Text("adam")}}),
              ElementsAre("c.when: can never hold: p: 'adam' is not one of its values: sgd, "
                          "adamw"));
  const Domain ints = IntDomain{.min = 0, .max = 9};
  EXPECT_THAT(FaultsOfCondition(ints, {.any_of = {4.0}}), IsEmpty());
  EXPECT_THAT(FaultsOfCondition(ints, {.any_of = {int64_t{10}}}),
              ElementsAre("c.when: can never hold: p: 10 is above max 9"));
}

TEST(SearchSpaceCheck, BoundsMustAllowAValueOfTheParent) {
  const Domain width = IntDomain{.min = 8, .max = 64, .step = 8};
  EXPECT_THAT(FaultsOfCondition(width, {.at_least = 64}), IsEmpty());
  EXPECT_THAT(FaultsOfCondition(width, {.at_least = 9, .at_most = 16}), IsEmpty());
  EXPECT_THAT(FaultsOfCondition(width, {.at_least = 9, .at_most = 15}),
              ElementsAre("c.when: can never hold: p has no value at or above 9.0 and at or below "
                          "15.0"));
  EXPECT_THAT(FaultsOfCondition(width, {.at_least = 65}),
              ElementsAre("c.when: can never hold: p has no value at or above 65.0"));
  EXPECT_THAT(FaultsOfCondition(FloatDomain{.min = 0, .max = 1}, {.at_most = -0.1}),
              ElementsAre("c.when: can never hold: p has no value at or below -0.1"));
  EXPECT_THAT(FaultsOfCondition(CategoricalDomain{{Text("a"), int64_t{3}}}, {.at_least = 3}),
              IsEmpty());
  EXPECT_THAT(FaultsOfCondition(CategoricalDomain{{Text("a")}}, {.at_least = 3}),
              ElementsAre("c.when: can never hold: p has no value at or above 3.0"));
}

TEST(SearchSpaceCheck, ACycleOfConditionsIsRefused) {
  EXPECT_THAT(Faults({{"a", ConstantDomain{true}, {{"b", {true}}}},
                      {"b", ConstantDomain{true}, {{"c", {true}}}},
                      {"c", ConstantDomain{true}, {{"b", {true}}}}}),
              ElementsAre("b.when: runs in a circle: b → c → b"));
  EXPECT_THAT(Faults({{"a", ConstantDomain{true}, {{"a", {true}}}}}),
              ElementsAre("a.when: runs in a circle: a → a"));
}

TEST(SearchSpaceCheck, ALongChainOfConditionsIsNotACycle) {
  constexpr int kLength = 20'000;
  std::vector<Parameter> chain;
  for (int i = 0; i < kLength; ++i) {
    Parameter link{"p" + std::to_string(i), ConstantDomain{true}, {}};
    if (i + 1 < kLength) link.when = {{"p" + std::to_string(i + 1), {true}}};
    chain.push_back(link);
  }
  EXPECT_THAT(Faults(chain), IsEmpty());
  EXPECT_EQ(SearchSpace(chain).order().front(), kLength - 1);
}

TEST(SearchSpaceCheck, ManyFaultsAreOnlyCounted) {
  constexpr size_t kFaults = 1000;
  const std::vector<Value> values(kFaults + 1, Text("a"));
  const auto faults = SearchSpace::Check({{"p", CategoricalDomain{values}, {}}});
  ASSERT_EQ(faults.size(), kFaults);
  EXPECT_EQ(faults[SearchSpace::kDetailedFaults - 1].message, "'a' is listed twice; remove one");
  EXPECT_EQ(faults[SearchSpace::kDetailedFaults].message, "");
}

TEST(SearchSpaceCheck, ValuesThatDifferAreNotDuplicates) {
  EXPECT_THAT(Faults({{"p", CategoricalDomain{{true, int64_t{1}, Text("1"), Text("true")}}, {}}}),
              IsEmpty());
  EXPECT_THAT(Faults({{"p", CategoricalDomain{{int64_t{1}, 1.0}}, {}}}), testing::SizeIs(1));
  // No double tells these apart.
  EXPECT_THAT(Faults({{"p", CategoricalDomain{{(int64_t{1} << 60), (int64_t{1} << 60) + 1}}, {}}}),
              IsEmpty());
}

}  // namespace
}  // namespace attune
