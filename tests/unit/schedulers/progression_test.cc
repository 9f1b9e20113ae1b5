#include "schedulers/progression.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace attune::schedulers {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Rungs 1, 3, 9, 27; a trial reports costs at steps 1, 2, … and is recorded at each rung on its
// way.
class Progress : public ::testing::Test {
 protected:
  static std::vector<Step> Rungs() { return {Step(1), Step(3), Step(9), Step(27)}; }

  void Report(uint32_t trial, const std::vector<double>& costs, int64_t first = 1) {
    int64_t step = first;
    for (const double cost : costs) {
      const std::vector<Step> rungs = Rungs();
      const auto rung = std::ranges::find(rungs, Step(step));
      Observe(trial, step++, cost,
              rung == rungs.end() ? std::nullopt : std::optional(rung - rungs.begin()));
    }
  }

  void Observe(uint32_t trial, int64_t step, double cost, std::optional<size_t> rung = {}) {
    Ranking::Arrival report{TrialNumber(trial), Step(step), cost, rung};
    progression.Observe(report);
  }

  Progression progression{Rungs()};
};

TEST_F(Progress, OpensTheNextRungWhenTheOrderChanges) {
  EXPECT_EQ(progression.Limit(), Step(3));
  EXPECT_EQ(progression.below(), Step(1));
  Report(0, {0.9, 0.8, 0.7});
  Report(1, {0.8, 0.7, 0.6});
  EXPECT_EQ(progression.Limit(), Step(3)) << "trial 1 before trial 0, at either";
  Report(2, {0.5, 0.6});
  EXPECT_EQ(progression.Limit(), Step(3)) << "nobody new has come there";
  Report(2, {0.65}, 3);
  EXPECT_EQ(progression.Limit(), Step(9)) << "2 1 0 at step 1, 1 2 0 at step 3";
  EXPECT_EQ(progression.below(), Step(3));
}

TEST_F(Progress, OpensNothingAfterTheLastRung) {
  Report(0, {0.9, 0.8, 0.7});
  Report(1, {0.8, 0.7, 0.75});
  EXPECT_EQ(progression.Limit(), Step(9));
  Report(2, {0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.5, 0.4, 0.3});
  EXPECT_EQ(progression.Limit(), Step(9)) << "one alone is no ranking";
  Report(3, {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.4, 0.35});
  EXPECT_EQ(progression.Limit(), Step(27));
  EXPECT_TRUE(progression.IsComplete());
  Observe(0, 27, 0.1, 3);
  Observe(1, 27, 0.2, 3);
  EXPECT_EQ(progression.Limit(), Step(27));
}

TEST_F(Progress, EstimatesNoiseFromCurvesThatCrossTwice) {
  Report(0, {1.0, 0.5, 0.40});
  Report(1, {0.9, 0.6, 0.35});
  EXPECT_DOUBLE_EQ(progression.epsilon(), 0.40 - 0.35);
  Report(2, {0.87, 0.5, 0.36});  // once across trial 1: that is no noise
  EXPECT_DOUBLE_EQ(progression.epsilon(), 0.40 - 0.35);
  EXPECT_EQ(progression.Limit(), Step(3)) << "2 1 0, then 1 2 0, but 0.87 and 0.9 were alike";
  Report(3, {0.80, 0.5, 0.45});
  EXPECT_EQ(progression.Limit(), Step(9)) << "0.8 and 0.9 were not";
  EXPECT_DOUBLE_EQ(progression.epsilon(), 0.40 - 0.35) << "while nobody has come to the new one";
}

TEST_F(Progress, EpsilonIsTheNinetiethPercentile) {
  Report(0, {1.0, 0.9, 0.1});
  Report(1, {1.1, 0.8, 0.2});
  Report(2, {1.2, 0.7, 0.5});  // differences 0.1 0.3 0.4
  EXPECT_NEAR(progression.epsilon(), 0.3 + 0.8 * (0.4 - 0.3), 1e-12);
}

TEST_F(Progress, EqualValuesRankAlike) {
  Report(0, {0.5, 0.5, 0.5});
  Report(1, {0.5, 0.5, 0.5});
  Report(2, {0.4, 0.5, 0.5});
  EXPECT_EQ(progression.Limit(), Step(3));
}

TEST_F(Progress, IgnoresValuesThatAreNotFinite) {
  Report(0, {0.9, 0.8, 0.7});
  Report(1, {0.8, 0.7, kInf});
  Report(2, {kInf, 0.7, 0.6});
  EXPECT_EQ(progression.Limit(), Step(3));
}

TEST_F(Progress, ATrialThatSkipsRungsOpensThem) {
  Observe(0, 10, 0.5, 2);
  EXPECT_EQ(progression.Limit(), Step(9));
}

TEST_F(Progress, IgnoresRepeatedSteps) {
  Report(0, {1.0, 0.5, 0.40});
  Observe(1, 1, 0.9);
  Observe(1, 1, 1.1);
  Report(1, {0.6, 0.35}, 2);
  EXPECT_DOUBLE_EQ(progression.epsilon(), 0.40 - 0.35);
}

// The bound of the pairs that are made.
TEST_F(Progress, ComparesTheFirstTwoHundredTrials) {
  for (uint32_t trial = 0; trial < 199; ++trial) {
    const double cost = 10 + trial;
    Report(trial, {cost, cost, cost});
  }
  Report(199, {0.9, 0.6, 0.35});
  EXPECT_EQ(progression.epsilon(), 0);
  Report(200, {1.0, 0.5, 0.40});
  EXPECT_EQ(progression.epsilon(), 0) << "it is the two hundred and first";
}

TEST_F(Progress, ComparesTheTwoHundredthTrial) {
  for (uint32_t trial = 0; trial < 198; ++trial) {
    const double cost = 10 + trial;
    Report(trial, {cost, cost, cost});
  }
  Report(198, {0.9, 0.6, 0.35});
  Report(199, {1.0, 0.5, 0.40});
  EXPECT_DOUBLE_EQ(progression.epsilon(), 0.40 - 0.35);
}

TEST_F(Progress, ComparesEndedTrialsThatWereFirstAtARung) {
  Report(0, {1.0, 0.5, 0.40});
  progression.ForgetTrial(TrialNumber(0));
  Report(1, {0.9, 0.6, 0.35});
  EXPECT_DOUBLE_EQ(progression.epsilon(), 0.40 - 0.35);
}

TEST_F(Progress, ForgetsOtherEndedTrials) {
  const auto bytes = [this] {
    ArchiveWriter writer;
    progression.Save(writer);
    return writer.Take().size();
  };
  for (uint32_t trial = 0; trial < 201; ++trial) {
    const double cost = 10 + trial;
    Report(trial, {cost, cost, cost});
  }
  const size_t all = bytes();
  progression.ForgetTrial(TrialNumber(199));
  EXPECT_EQ(bytes(), all) << "the two hundredth may be compared";
  progression.ForgetTrial(TrialNumber(200));
  EXPECT_LT(bytes(), all);
}

TEST_F(Progress, KeepsRungsOpenAfterAnEdit) {
  Report(0, {0.9, 0.8, 0.7});
  Report(1, {0.8, 0.7, 0.75});
  ASSERT_EQ(progression.Limit(), Step(9));
  progression.Restart({Step(1), Step(4), Step(16), Step(64)}, {});
  EXPECT_EQ(progression.Limit(), Step(16));
  progression.Restart({Step(2), Step(6)}, {});
  EXPECT_EQ(progression.Limit(), Step(6));
}

TEST_F(Progress, RefusesInvalidBytes) {
  ArchiveWriter writer;
  progression.Save(writer);
  std::string bytes = writer.Take();
  bytes[0] = 4;  // one rung too many
  ArchiveReader reader(bytes);
  progression.Load(reader);
  EXPECT_FALSE(reader.ok());
}

}  // namespace
}  // namespace attune::schedulers
