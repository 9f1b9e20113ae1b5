#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/space/search_space.h"
#include "tests/support/golden.h"

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr double kInf = std::numeric_limits<double>::infinity();

Value Text(const char* text) { return std::string(text); }

// Tests assert on the places of faults. Their messages are compared with one golden file a test.
class SearchSpaceCheck : public ::testing::Test {
 protected:
  void TearDown() override {
    const char* test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    if (!messages_.empty())
      testing::ExpectGolden(std::string("core/space/check/") + test, messages_);
  }

  // The places of all faults: "lr.max".
  std::vector<std::string> Faults(const std::vector<Parameter>& parameters) {
    std::vector<std::string> places;
    for (const SpaceFault& fault : SearchSpace::Check(parameters)) {
      places.push_back(fault.parameter + "." + fault.key);
      messages_ += places.back() + ": " + fault.message + "\n";
    }
    return places;
  }

  // The faults of a parameter `c` with this condition on its parent `p`.
  std::vector<std::string> FaultsOfCondition(Domain parent, Condition condition) {
    condition.parent = "p";
    return Faults({{"p", std::move(parent)}, {"c", ConstantDomain{true}, {condition}}});
  }

 private:
  std::string messages_;
};

TEST_F(SearchSpaceCheck, AValidSpaceHasNoFault) {
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

TEST_F(SearchSpaceCheck, AnEmptySpaceIsOneConfiguration) { EXPECT_THAT(Faults({}), IsEmpty()); }

TEST_F(SearchSpaceCheck, AllFaultsAreReportedTogether) {
  EXPECT_THAT(Faults({{"lr", FloatDomain{.min = 0.1, .max = 0.001}},
                      {"decay", FloatDomain{.min = 0, .max = 1, .scale = Scale::kLog}},
                      {"width", IntDomain{.min = 8, .max = 4, .step = 0}},
                      {"optimizer", CategoricalDomain{}}}),
              ElementsAre("lr.max", "decay.min", "width.max", "width.step", "optimizer.values"));
}

TEST_F(SearchSpaceCheck, AParameterMayNameAParentOnce) {
  EXPECT_THAT(Faults({{"layers", IntDomain{.min = 2, .max = 8}},
                      {"skip",
                       FloatDomain{.min = 0, .max = 1},
                       {{.parent = "layers", .at_least = 4}, {.parent = "layers", .at_most = 6}}}}),
              ElementsAre("skip.when"));
}

TEST_F(SearchSpaceCheck, BoundsMustBeFinite) {
  EXPECT_THAT(Faults({{"lr", FloatDomain{.min = -kInf, .max = kInf}}}),
              ElementsAre("lr.min", "lr.max"));
  EXPECT_THAT(Faults({{"lr", FloatDomain{.min = -1.7e308, .max = 1.7e308}}}),
              ElementsAre("lr.max"));
}

TEST_F(SearchSpaceCheck, StepsOfARealRangeMustBePositiveAndDistinct) {
  EXPECT_THAT(Faults({{"lr", FloatDomain{.min = 0, .max = 1, .step = 0}}}), ElementsAre("lr.step"));
  EXPECT_THAT(Faults({{"lr", FloatDomain{.min = 0, .max = 1, .step = 0x1p-53}}}), IsEmpty());
  EXPECT_THAT(Faults({{"lr", FloatDomain{.min = 0, .max = 1, .step = 0x1p-54}}}),
              ElementsAre("lr.step"));
}

TEST_F(SearchSpaceCheck, AnIntegerRangeMustNotOverflow) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(Faults({{"n", IntDomain{.min = 0, .max = kMax - 1}}}), IsEmpty());
  EXPECT_THAT(Faults({{"n", IntDomain{.min = -1, .max = kMax - 1}}}), ElementsAre("n.max"));
}

TEST_F(SearchSpaceCheck, DuplicateValuesAreRefused) {
  EXPECT_THAT(Faults({{"n", CategoricalDomain{{int64_t{1}, Text("1"), 1.0, true}}}}),
              ElementsAre("n.values"));
}

TEST_F(SearchSpaceCheck, ListedNumbersMustBeFinite) {
  EXPECT_THAT(Faults({{"a", CategoricalDomain{{0.5, kInf}}}, {"b", ConstantDomain{-kInf}}}),
              ElementsAre("a.values", "b.value"));
}

TEST_F(SearchSpaceCheck, DuplicateNamesAreRefused) {
  EXPECT_THAT(Faults({{"lr", ConstantDomain{0.1}}, {"lr", ConstantDomain{0.2}}, {"", {}}}),
              UnorderedElementsAre("lr.", "."));
}

TEST_F(SearchSpaceCheck, AConditionMustNameAParameter) {
  EXPECT_THAT(Faults({{"optimizer", ConstantDomain{Text("sgd")}},
                      {"momentum", ConstantDomain{0.9}, {{"optimiser", {Text("sgd")}}}}}),
              ElementsAre("momentum.when"));
}

TEST_F(SearchSpaceCheck, AConditionMustHaveOneForm) {
  EXPECT_THAT(FaultsOfCondition(IntDomain{.min = 0, .max = 9}, {}), ElementsAre("c.when"));
  EXPECT_THAT(
      FaultsOfCondition(IntDomain{.min = 0, .max = 9}, {.any_of = {int64_t{1}}, .at_least = 1}),
      ElementsAre("c.when"));
}

TEST_F(SearchSpaceCheck, AConditionMustNameAValueOfItsParent) {
  const Domain choice = CategoricalDomain{{Text("sgd"), Text("adamw")}};
  EXPECT_THAT(FaultsOfCondition(choice, {.any_of = {Text("sgd")}}), IsEmpty());
  EXPECT_THAT(FaultsOfCondition(choice, {.any_of = {Text("sgd"), Text("adam")}}),
              ElementsAre("c.when"));
  const Domain ints = IntDomain{.min = 0, .max = 9};
  EXPECT_THAT(FaultsOfCondition(ints, {.any_of = {4.0}}), IsEmpty());
  EXPECT_THAT(FaultsOfCondition(ints, {.any_of = {int64_t{10}}}), ElementsAre("c.when"));
}

TEST_F(SearchSpaceCheck, BoundsMustAllowAValueOfTheParent) {
  const Domain width = IntDomain{.min = 8, .max = 64, .step = 8};
  EXPECT_THAT(FaultsOfCondition(width, {.at_least = 64}), IsEmpty());
  EXPECT_THAT(FaultsOfCondition(width, {.at_least = 9, .at_most = 16}), IsEmpty());
  EXPECT_THAT(FaultsOfCondition(width, {.at_least = 9, .at_most = 15}), ElementsAre("c.when"));
  EXPECT_THAT(FaultsOfCondition(width, {.at_least = 65}), ElementsAre("c.when"));
  EXPECT_THAT(FaultsOfCondition(FloatDomain{.min = 0, .max = 1}, {.at_most = -0.1}),
              ElementsAre("c.when"));
  EXPECT_THAT(FaultsOfCondition(CategoricalDomain{{Text("a"), int64_t{3}}}, {.at_least = 3}),
              IsEmpty());
  EXPECT_THAT(FaultsOfCondition(CategoricalDomain{{Text("a")}}, {.at_least = 3}),
              ElementsAre("c.when"));
}

TEST_F(SearchSpaceCheck, ACycleOfConditionsIsRefused) {
  EXPECT_THAT(Faults({{"a", ConstantDomain{true}, {{"b", {true}}}},
                      {"b", ConstantDomain{true}, {{"c", {true}}}},
                      {"c", ConstantDomain{true}, {{"b", {true}}}}}),
              ElementsAre("b.when"));
  EXPECT_THAT(Faults({{"a", ConstantDomain{true}, {{"a", {true}}}}}), ElementsAre("a.when"));
}

TEST_F(SearchSpaceCheck, ALongChainOfConditionsIsNotACycle) {
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

TEST_F(SearchSpaceCheck, ManyFaultsAreOnlyCounted) {
  constexpr size_t kFaults = 1000;
  const std::vector<Value> values(kFaults + 1, Text("a"));
  const auto faults = SearchSpace::Check({{"p", CategoricalDomain{values}, {}}});
  ASSERT_EQ(faults.size(), kFaults);
  EXPECT_NE(faults[SearchSpace::kDetailedFaults - 1].message, "");
  EXPECT_EQ(faults[SearchSpace::kDetailedFaults].message, "");
}

TEST_F(SearchSpaceCheck, ValuesThatDifferAreNotDuplicates) {
  EXPECT_THAT(Faults({{"p", CategoricalDomain{{true, int64_t{1}, Text("1"), Text("true")}}, {}}}),
              IsEmpty());
  EXPECT_THAT(Faults({{"p", CategoricalDomain{{int64_t{1}, 1.0}}, {}}}), ::testing::SizeIs(1));
  // Both integers round to the same double.
  EXPECT_THAT(Faults({{"p", CategoricalDomain{{(int64_t{1} << 60), (int64_t{1} << 60) + 1}}, {}}}),
              IsEmpty());
}

}  // namespace
}  // namespace attune
