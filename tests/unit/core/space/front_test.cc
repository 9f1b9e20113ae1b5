#include "core/space/front.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

const std::vector<Objective> kBoth = {Maximise("accuracy"), Minimise("latency")};

Best Report(uint32_t trial, std::vector<double> values) {
  return {.trial = TrialNumber(trial), .attempt = 1, .step = Step(1), .values = std::move(values)};
}

std::vector<uint32_t> Trials(const Front& front) {
  std::vector<uint32_t> trials;
  for (const Best& report : front) trials.push_back(report.trial.value);
  return trials;
}

TEST(Front, KeepsReportsThatAreNotDominated) {
  Front front;
  EXPECT_TRUE(AddToFront(kBoth, Report(0, {0.8, 20}), front).joined);
  EXPECT_TRUE(AddToFront(kBoth, Report(1, {0.9, 30}), front).joined);
  EXPECT_FALSE(AddToFront(kBoth, Report(2, {0.8, 25}), front).joined);
  EXPECT_TRUE(AddToFront(kBoth, Report(3, {0.7, 10}), front).joined);
  EXPECT_THAT(Trials(front), ElementsAre(0, 1, 3));

  const FrontChange change = AddToFront(kBoth, Report(4, {0.85, 10}), front);
  EXPECT_THAT(Trials(change.left), ElementsAre(0, 3));
  EXPECT_THAT(Trials(front), ElementsAre(1, 4));
}

TEST(Front, KeepsTheFirstOfEqualReports) {
  Front front;
  AddToFront(kBoth, Report(5, {0.8, 20}), front);
  EXPECT_FALSE(AddToFront(kBoth, Report(1, {0.8, 20}), front).joined);
  EXPECT_THAT(Trials(front), ElementsAre(5));
}

TEST(Front, WithOneObjectiveIsTheBestReport) {
  const std::vector<Objective> one = {Minimise("loss")};
  Front front;
  for (uint32_t trial = 0; trial < 5; ++trial)
    AddToFront(one, Report(trial, {std::fabs(2.0 - trial)}), front);
  EXPECT_THAT(Trials(front), ElementsAre(2));
  EXPECT_EQ(BestOfFront(one, front)->trial, TrialNumber(2));
  EXPECT_EQ(BestOfFront(one, {}), nullptr);
}

TEST(Front, IsBoundedAndKeepsTheBestInEachObjective) {
  Front front;
  for (uint32_t trial = 0; trial < 3 * kMaxFront; ++trial) {
    const double accuracy = trial * 1e-3;
    AddToFront(kBoth, Report(trial, {accuracy, accuracy * accuracy}), front);
    EXPECT_LE(front.size(), kMaxFront);
  }
  EXPECT_EQ(front.size(), kMaxFront);
  EXPECT_EQ(front.front().trial, TrialNumber(0));
  EXPECT_EQ(BestOfFront(kBoth, front)->trial, TrialNumber(3 * kMaxFront - 1));
}

TEST(Front, AFullFrontIsDeterministic) {
  const auto fill = [] {
    Front front;
    for (uint32_t trial = 0; trial < 2 * kMaxFront; ++trial) {
      const double accuracy = (trial * 37 % 211) * 1e-3;
      AddToFront(kBoth, Report(trial, {accuracy, accuracy}), front);
    }
    return front;
  };
  EXPECT_EQ(fill(), fill());
}

TEST(ValuesThatCount, NeedEveryObjectiveFinite) {
  EXPECT_THAT(ValuesThatCount(kBoth, {}, {{"accuracy", 0.9}, {"latency", 5}}), ElementsAre(0.9, 5));
  EXPECT_THAT(ValuesThatCount(kBoth, {}, {{"accuracy", 0.9}}), IsEmpty());
  for (const double bad : {kNaN, kInf, -kInf})
    EXPECT_THAT(ValuesThatCount(kBoth, {}, {{"accuracy", bad}, {"latency", 5}}), IsEmpty());
}

TEST(ValuesThatCount, NeedEveryConstraintToHold) {
  const std::vector<Objective> one = {Maximise("accuracy")};
  const std::vector<Constraint> bounds = {{.metric = "latency", .min = 1, .max = 20}};
  for (const double inside : {1.0, 7.5, 20.0})
    EXPECT_THAT(ValuesThatCount(one, bounds, {{"accuracy", 0.9}, {"latency", inside}}),
                ElementsAre(0.9));
  for (const double outside : {0.99, 20.01, kNaN, kInf, -kInf})
    EXPECT_THAT(ValuesThatCount(one, bounds, {{"accuracy", 0.9}, {"latency", outside}}), IsEmpty());
  EXPECT_THAT(ValuesThatCount(one, bounds, {{"accuracy", 0.9}}), IsEmpty());
}

}  // namespace
}  // namespace attune
