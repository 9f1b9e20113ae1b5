#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "schedulers/asha.h"
#include "tests/unit/schedulers/harness.h"

// ASHA with several brackets.
namespace attune::schedulers {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

constexpr int kTrials = 40;

Asha MakeBracketed(int64_t brackets, Asha::Form form = Asha::Form::kStop, int64_t max = 81) {
  return Asha(Maximise("accuracy"),
              Ladder({.min = Step(1),
                      .max = Step(max),
                      .reduction_factor = 3,
                      .brackets = brackets,
                      .seed = 7}),
              form);
}

int64_t FirstRungOf(const SchedulerHarness& sweep, uint32_t trial) {
  return sweep.NextMilestone({trial, 0});
}

// Trials by the first rung of their bracket.
std::map<int64_t, std::vector<uint32_t>> ByFirstRung(const SchedulerHarness& sweep) {
  std::map<int64_t, std::vector<uint32_t>> trials;
  for (uint32_t trial = 0; trial < kTrials; ++trial)
    trials[FirstRungOf(sweep, trial)].push_back(trial);
  return trials;
}

// 81, 34, 15 and 8 of HyperBand's brackets for R = 81 and a factor of 3, before they are rounded
// up.
TEST(AshaBrackets, TrialsAreSpreadAsInHyperBand) {
  const SchedulerHarness sweep(MakeBracketed(4));
  std::map<int64_t, double> counts;
  constexpr uint32_t kMany = 20'000;
  for (uint32_t trial = 0; trial < kMany; ++trial) ++counts[FirstRungOf(sweep, trial)];
  const double all = 81 + 33.75 + 15 + 7.5;
  EXPECT_NEAR(counts[1] / kMany, 81 / all, 0.01);
  EXPECT_NEAR(counts[3] / kMany, 33.75 / all, 0.01);
  EXPECT_NEAR(counts[9] / kMany, 15 / all, 0.01);
  EXPECT_NEAR(counts[27] / kMany, 7.5 / all, 0.01);
  EXPECT_THAT(sweep.Rungs(), ElementsAre(1, 3, 9, 27, 81));
}

TEST(AshaBrackets, ATrialIsRankedAmongThoseOfItsBracketOnly) {
  SchedulerHarness sweep(MakeBracketed(2));
  const auto trials = ByFirstRung(sweep);
  const auto& early = trials.at(1);
  const auto& late = trials.at(3);
  ASSERT_GE(early.size(), 4u);
  ASSERT_GE(late.size(), 4u);
  double value = 0.9;
  for (const uint32_t trial : early) sweep.Report({trial, 1}, value -= 0.001);
  for (int i = 0; i < 3; ++i) sweep.Report({early[i], 3}, 0.95);
  // Worse than all others at this rung, but the first trial of its bracket there.
  sweep.Report({late[0], 1}, 0.1);
  EXPECT_EQ(sweep.verdict().reason.rung, Step(0));  // no rung of its bracket
  sweep.Report({late[0], 3}, 0.1);
  EXPECT_THAT(sweep.verdict(), Continues());
  EXPECT_EQ(sweep.verdict().reason.peers, 1);
  sweep.Report({late[1], 3}, 0.2).Report({late[2], 3}, 0.05);
  EXPECT_THAT(sweep.verdict(), Stops("asha"));
  EXPECT_EQ(sweep.verdict().reason.rule, "asha, bracket 2");
  EXPECT_EQ(sweep.verdict().reason.rank, 3);
  EXPECT_EQ(sweep.verdict().reason.peers, 3);
}

TEST(AshaBrackets, AFreeSlotServesTheHighestRungOfAllBrackets) {
  SchedulerHarness sweep(MakeBracketed(2, Asha::Form::kPromote));
  const auto trials = ByFirstRung(sweep);
  const auto& early = trials.at(1);
  const auto& late = trials.at(3);
  // The best trial of each bracket arrives first, and is paused before there are three.
  for (int i = 0; i < 3; ++i) sweep.Report({early[i], 1}, 0.9 - 0.1 * i);
  for (int i = 0; i < 3; ++i) sweep.Report({late[i], 3}, 0.5 - 0.1 * i);
  EXPECT_THAT(sweep.Promoted(), Optional(late[0]));
  EXPECT_THAT(sweep.Promoted(), Optional(early[0]));
  EXPECT_EQ(sweep.Promoted(), std::nullopt);
}

TEST(AshaBrackets, AReportWhoseSlotIsForAHigherRungOfAnotherBracketIsPaused) {
  SchedulerHarness sweep(MakeBracketed(2, Asha::Form::kPromote));
  const auto trials = ByFirstRung(sweep);
  for (int i = 0; i < 3; ++i) sweep.Report({trials.at(3)[i], 3}, 0.5 - 0.1 * i);
  for (int i = 0; i < 3; ++i) sweep.Report({trials.at(1)[i], 1}, 0.7 + 0.1 * i);
  EXPECT_THAT(sweep.verdict(), Pauses());
  EXPECT_THAT(sweep.Promoted(), Optional(trials.at(3)[0]));
  EXPECT_THAT(sweep.Promoted(), Optional(trials.at(1)[2]));
}

TEST(AshaBrackets, AnEditOfTheirNumberRanksAllTrialsAgain) {
  const auto edited = [](int64_t brackets) {
    return SweepSpec{.objectives = {Maximise("accuracy")},
                     .seed = 7,
                     .scheduler = {.name = "asha",
                                   .options = {{"min", int64_t{1}},
                                               {"mode", std::string("stop")},
                                               {"reduction_factor", int64_t{3}},
                                               {"brackets", brackets}}},
                     .max_step = Step(81)};
  };
  SchedulerHarness sweep(MakeBracketed(2));
  const auto trials = ByFirstRung(sweep);
  for (int i = 0; i < 2; ++i) {
    sweep.Report({trials.at(1)[i], 1}, 0.5).Report({trials.at(1)[i], 3}, 0.5);
    sweep.Report({trials.at(3)[i], 3}, 0.4);
  }
  sweep.Adapt(edited(1));
  sweep.Report({trials.at(1)[2], 3}, 0.6);
  EXPECT_EQ(sweep.verdict().reason.peers, 5);
  sweep.Adapt(edited(2));
  sweep.Report({trials.at(1)[3], 3}, 0.1);
  EXPECT_EQ(sweep.verdict().reason.peers, 4);
  EXPECT_THAT(sweep.verdict(), Stops("asha"));
}

TEST(AshaBrackets, AreTheSameAfterASnapshot) {
  const auto run = [](bool restarts) {
    SchedulerHarness sweep(MakeBracketed(3, Asha::Form::kPromote, 27));
    RandomStream random(5, TrialNumber(0), "test");
    std::string texts;
    for (uint32_t trial = 0; trial < kTrials; ++trial) {
      sweep.Report({trial, FirstRungOf(sweep, trial)}, random.Uniform());
      texts += sweep.text() + "\n";
      if (restarts) sweep.Restore(MakeBracketed(3, Asha::Form::kPromote, 27));
      if (const auto promoted = sweep.Promoted()) texts += std::to_string(*promoted) + "\n";
    }
    return texts;
  };
  EXPECT_EQ(run(true), run(false));
}

TEST(AshaBrackets, RefusesMoreBracketsThanRungs) {
  const auto make = [](int64_t brackets) {
    return AshaEntry().make({.objectives = {Maximise("accuracy")},
                             .scheduler = {.name = "asha",
                                           .options = {{"min", int64_t{1}},
                                                       {"mode", std::string("stop")},
                                                       {"reduction_factor", int64_t{3}},
                                                       {"brackets", brackets}}},
                             .max_step = Step(28)});
  };
  EXPECT_TRUE(make(4).ok());
  EXPECT_EQ(make(5).error().code, ErrorCode::kInvalid);
  EXPECT_THAT(make(5).error().message, ::testing::StartsWith("scheduler.brackets: 5 "));
}

}  // namespace
}  // namespace attune::schedulers
