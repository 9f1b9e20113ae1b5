#include "schedulers/hyperband.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "tests/support/golden.h"
#include "tests/unit/schedulers/harness.h"

namespace attune::schedulers {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::StartsWith;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// Brackets of 4, 3 and 3 trials: rungs 1 and 2, rung 2, none.
HyperBand Small() {
  return HyperBand(Maximise("accuracy"), {.min = Step(1), .max = Step(4), .reduction_factor = 2});
}

// By algorithm 1 of the paper: of each bracket, trials@step at every rung, and at the end max.
std::vector<std::string> Table(int64_t max, int64_t reduction_factor, int64_t min = 1) {
  std::vector<std::string> table;
  for (const BracketShape& shape : HyperBand::Round({Step(min), Step(max), reduction_factor})) {
    int64_t trials = shape.trials;
    std::string row;
    for (const Step rung : shape.rungs) {
      row += std::to_string(trials) + "@" + std::to_string(rung.value) + " ";
      trials /= reduction_factor;
    }
    table.push_back(row + std::to_string(trials) + "@" + std::to_string(max));
  }
  return table;
}

TEST(HyperBand, HasThePapersBrackets) {
  EXPECT_THAT(Table(81, 3), ElementsAre("81@1 27@3 9@9 3@27 1@81", "34@3 11@9 3@27 1@81",
                                        "15@9 5@27 1@81", "8@27 2@81", "5@81"));
}

// Logarithms in floating point would give one bracket too few.
TEST(HyperBand, BracketsAreExactAtPowersOfTheReductionFactor) {
  EXPECT_THAT(Table(1000, 10), ElementsAre("1000@1 100@10 10@100 1@1000", "134@10 13@100 1@1000",
                                           "20@100 2@1000", "4@1000"));
  EXPECT_THAT(Table(243, 3),
              ElementsAre("243@1 81@3 27@9 9@27 3@81 1@243", "98@3 32@9 10@27 3@81 1@243",
                          "41@9 13@27 4@81 1@243", "18@27 6@81 2@243", "9@81 3@243", "6@243"));
}

TEST(HyperBand, RungsAreRoundedDownWhereMaxIsNoPower) {
  EXPECT_THAT(Table(100, 3), ElementsAre("81@1 27@3 9@11 3@33 1@100", "34@3 11@11 3@33 1@100",
                                         "15@11 5@33 1@100", "8@33 2@100", "5@100"));
  EXPECT_THAT(Table(100, 3, 5), ElementsAre("9@11 3@33 1@100", "5@33 1@100", "3@100"));
  EXPECT_THAT(SchedulerHarness(HyperBand(Maximise("m"), {Step(5), Step(100), 3})).Rungs(),
              ElementsAre(11, 33, 100));
}

// Worked out by hand, with one slot that asks what to run whenever it is free.
TEST(HyperBand, FollowsThePaper) {
  SchedulerHarness sweep(Small());

  EXPECT_EQ(sweep.NextMilestone({0, 0}), 1);
  EXPECT_THAT(sweep.Report({0, 1}, 0.5).verdict(), Pauses());
  std::string texts = sweep.text() + "\n";
  EXPECT_EQ(sweep.Promoted(), std::nullopt);
  EXPECT_THAT(sweep.Report({1, 1}, 0.9).verdict(), Pauses());
  EXPECT_EQ(sweep.Promoted(), std::nullopt);  // both later trials may be better
  EXPECT_THAT(sweep.Report({2, 1}, 0.1).verdict(), Stops("hyperband"));  // third; two continue
  EXPECT_EQ(sweep.verdict().reason.rank, 3);
  texts += sweep.text() + "\n";
  EXPECT_EQ(sweep.verdict().reason.cutoff, 0.5);
  EXPECT_THAT(sweep.Promoted(), Optional(1u));  // at most one better may come
  EXPECT_EQ(sweep.promotion().rank, 1);
  EXPECT_EQ(sweep.promotion().peers, 3);
  testing::ExpectGolden("schedulers/hyperband", texts + sweep.promotion().text + "\n");
  EXPECT_EQ(sweep.NextMilestone({1, 1}), 2);
  EXPECT_THAT(sweep.Report({1, 2}, 0.8).verdict(), Pauses());
  EXPECT_EQ(sweep.Promoted(), std::nullopt);
  EXPECT_THAT(sweep.Report({3, 1}, 0.7).verdict(), Continues());  // the second; trial 0 is out
  EXPECT_THAT(sweep.Report({3, 2}, 0.85).verdict(), Continues());
  EXPECT_EQ(sweep.verdict().reason.rung, Step(2));
  EXPECT_EQ(sweep.NextMilestone({3, 2}), 0);  // it trains to max
  EXPECT_EQ(sweep.Promoted(), std::nullopt);  // trials 0 and 1 have lost
  EXPECT_TRUE(std::holds_alternative<StartNew>(sweep.Next()));

  EXPECT_EQ(sweep.NextMilestone({4, 0}), 2);  // of the next bracket, with one rung
  EXPECT_THAT(sweep.Report({4, 2}, 0.3).verdict(), Pauses());
  EXPECT_THAT(sweep.Report({5, 2}, 0.2).verdict(), Stops("hyperband"));
  EXPECT_THAT(sweep.Report({6, 2}, 0.1).verdict(), Stops("hyperband"));
  EXPECT_THAT(sweep.Promoted(), Optional(4u));

  EXPECT_EQ(sweep.NextMilestone({7, 0}), 0);  // of the last bracket
  EXPECT_EQ(sweep.Create(9).NextMilestone({9, 0}), 0);
  EXPECT_EQ(sweep.NextMilestone({10, 0}), 1);  // and of the next round
}

TEST(HyperBand, SmallerIsBetterWhenMinimising) {
  SchedulerHarness sweep(HyperBand(Minimise("loss"), {Step(1), Step(4), 2}), "loss");
  sweep.Report({0, 1}, 0.1).Report({1, 1}, 0.2);
  EXPECT_THAT(sweep.Report({2, 1}, 0.3).verdict(), Stops("hyperband"));
}

TEST(HyperBand, ContinuesTheEarlierOfEqualValuesUpToTheirShare) {
  SchedulerHarness sweep(Small());
  for (uint32_t trial = 0; trial < 4; ++trial) sweep.Report({trial, 1}, 0.5);
  EXPECT_THAT(sweep.Promoted(), Optional(0u));
  EXPECT_THAT(sweep.Promoted(), Optional(1u));
  EXPECT_EQ(sweep.Promoted(), std::nullopt);
}

TEST(HyperBand, NeverContinuesTrialsWithoutAFiniteValue) {
  SchedulerHarness sweep(Small());
  uint32_t trial = 0;
  for (const double bad : {kNaN, kInf, -kInf})
    EXPECT_THAT(sweep.Report({trial++, 1}, bad).verdict(), Stops("hyperband"));
  EXPECT_THAT(sweep.verdict(), Stops("hyperband"));
  EXPECT_THAT(sweep.Report({3, 1}, -1e300).verdict(), Continues());
  EXPECT_THAT(sweep.Report({3, 2}, -1e300).verdict(), Continues());  // the only one there is
}

TEST(HyperBand, AnEndedTrialCountsAsALossWithoutWaiting) {
  SchedulerHarness sweep(Small());
  sweep.Report({0, 1}, 0.5).Report({1, 1}, 0.9).Create(3);
  EXPECT_EQ(sweep.Promoted(), std::nullopt);
  sweep.End(2);
  EXPECT_THAT(sweep.Promoted(), Optional(1u));
  EXPECT_EQ(sweep.Promoted(), std::nullopt);
  sweep.End(3);
  EXPECT_THAT(sweep.Promoted(), Optional(0u));
  sweep.Report({0, 2}, 0.5);
  EXPECT_THAT(sweep.verdict(), Pauses());
  sweep.End(1);  // on its way to the same rung
  EXPECT_THAT(sweep.Promoted(), Optional(0u));
  EXPECT_EQ(sweep.NextMilestone({0, 2}), 0);
}

TEST(HyperBand, APausedTrialThatEndsKeepsItsPlace) {
  SchedulerHarness sweep(Small());
  sweep.Report({0, 1}, 0.9).Report({1, 1}, 0.8);
  sweep.End(0);
  EXPECT_THAT(sweep.Report({2, 1}, 0.7).verdict(), Stops("hyperband"));
}

TEST(HyperBand, ContinuesTheBestTrialsIfNoMoreCome) {
  SchedulerHarness sweep(Small());
  sweep.Report({0, 1}, 0.5).Report({1, 1}, 0.9);
  EXPECT_TRUE(std::holds_alternative<StartNew>(sweep.Next(true)));
  EXPECT_THAT(sweep.Promoted(false), Optional(1u));  // one of two
  EXPECT_EQ(sweep.promotion().rank, 1);
  EXPECT_TRUE(std::holds_alternative<Wait>(sweep.Next(false, 1)));
  sweep.Report({1, 2}, 0.9);
  EXPECT_THAT(sweep.Promoted(false), Optional(1u));  // alone at the next rung
  sweep.End(1);
  const NextMove done = sweep.Next(false);
  ASSERT_TRUE(std::holds_alternative<Done>(done));
  EXPECT_FALSE(std::get<Done>(done).text.empty());
  // The sweep is extended: the bracket fills up after all.
  sweep.Report({2, 1}, 0.4);
  EXPECT_THAT(sweep.verdict(), Stops("hyperband"));
  EXPECT_THAT(sweep.Report({3, 1}, 0.6).verdict(), Continues());
}

TEST(HyperBand, AReportThatPassesSeveralRungsCompetesAtEach) {
  SchedulerHarness sweep(Small());
  EXPECT_THAT(sweep.Report({0, 3}, 0.9).verdict(), Pauses());
  EXPECT_EQ(sweep.verdict().reason.rung, Step(1));
  sweep.Report({1, 1}, 0.1);
  EXPECT_THAT(sweep.Report({2, 1}, 0.8).verdict(), Pauses());
  EXPECT_EQ(sweep.Promoted(), std::nullopt);  // past rung 1; one more will reach rung 2
  EXPECT_THAT(sweep.Report({3, 1}, 0.2).verdict(), Stops("hyperband"));
  EXPECT_THAT(sweep.Promoted(), Optional(2u));
  EXPECT_THAT(sweep.Report({2, 2}, 0.95).verdict(), Continues());
  EXPECT_EQ(sweep.Promoted(), std::nullopt);  // 0.9 of step 3 was not better
}

TEST(HyperBand, ARepeatedOrEarlierStepIsNeitherJudgedNorRecorded) {
  SchedulerHarness sweep(Small());
  sweep.Create(3);
  sweep.End(2);
  sweep.End(3);
  EXPECT_THAT(sweep.Report({0, 1}, 0.5).verdict(), Continues());
  EXPECT_THAT(sweep.Report({0, 1}, 0.1).verdict(), Continues());
  EXPECT_THAT(sweep.verdict(), Continues());
  EXPECT_EQ(sweep.verdict().reason.rung, Step(0));
  EXPECT_EQ(sweep.NextMilestone({0, 0}), 2);  // a retry from the beginning
  EXPECT_EQ(sweep.Report({1, 1}, 0.4).verdict().reason.peers, 2);
}

TEST(HyperBand, AReopenedTrialIsOutsideItsBracket) {
  SchedulerHarness sweep(Small());
  sweep.Create(3);
  sweep.End(0);
  EXPECT_THAT(sweep.Report({0, 1}, 0.9).verdict(), Continues());
  EXPECT_THAT(sweep.verdict(), Continues());
  EXPECT_EQ(sweep.verdict().reason.rung, Step(0));
  EXPECT_EQ(sweep.Report({1, 1}, 0.4).verdict().reason.peers, 1);
}

SweepSpec Spec(int64_t min, int64_t max, int64_t reduction_factor) {
  return {.objectives = {Maximise("accuracy")},
          .scheduler = {.name = "hyperband",
                        .options = {{"min", min}, {"reduction_factor", reduction_factor}}},
          .max_step = Step(max)};
}

TEST(HyperBand, FillsAStartedBracketFirstAfterAnEdit) {
  SchedulerHarness sweep(Small());
  sweep.Report({0, 1}, 0.5);
  sweep.Adapt(Spec(1, 9, 3));  // 9@1, 5@3, 3@9
  EXPECT_THAT(sweep.Rungs(), ElementsAre(1, 3, 9));
  EXPECT_EQ(sweep.NextMilestone({3, 0}), 1);
  EXPECT_EQ(sweep.NextMilestone({3, 1}), 2);
  EXPECT_EQ(sweep.NextMilestone({4, 1}), 3);
  EXPECT_EQ(sweep.Report({4, 1}, 0.5).verdict().reason.rule, "hyperband, trials 4 to 12");
}

TEST(HyperBand, IgnoresRungsBeyondALowerMax) {
  SchedulerHarness sweep(HyperBand(Maximise("accuracy"), {Step(1), Step(8), 2}));
  sweep.Create(0);
  sweep.Adapt(Spec(1, 4, 2));
  EXPECT_EQ(sweep.NextMilestone({0, 1}), 2);
  EXPECT_EQ(sweep.NextMilestone({0, 2}), 0);
}

TEST(HyperBand, IsTheSameAfterASnapshot) {
  SchedulerHarness sweep(Small());
  sweep.Report({0, 1}, 0.5).Report({1, 1}, 0.9).Report({2, 1}, 0.1);
  sweep.Restore(Small());
  EXPECT_THAT(sweep.Promoted(), Optional(1u));
  EXPECT_THAT(sweep.Report({3, 1}, 0.4).verdict(), Stops("hyperband"));
  EXPECT_THAT(sweep.Promoted(), Optional(0u));
}

TEST(HyperBand, NamesTheInvalidKey) {
  const auto error = [](const SweepSpec& spec) {
    return HyperBandEntry().make(spec).error().message;
  };
  EXPECT_THAT(error(Spec(1, 0, 3)), StartsWith("scheduler.max: "));
  EXPECT_THAT(error(Spec(4, 9, 3)), StartsWith("scheduler.min: 4 "));
  EXPECT_THAT(error(Spec(1, 1'000'000, 2)),
              AllOf(StartsWith("scheduler.min: "), HasSubstr("524288")));
  EXPECT_TRUE(HyperBandEntry().make(Spec(1, 100'000, 10)).ok());
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_TRUE(HyperBandEntry().make(Spec(kMax / 8, kMax, 4)).ok());
}

// Sweeps with any number of slots, fewer than a bracket among them, with trials that fail on the
// way. Each sweep ends, and the trials that continue from a rung are the best that reached it.
TEST(HyperBand, AgreesWithTheDefinitionOverRandomSweeps) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    RandomStream random(seed, TrialNumber(0), "hyperband");
    const HyperBand::Options options{Step(1), Step(9), random.Integer(2, 3)};
    SchedulerHarness sweep(HyperBand(Maximise("accuracy"), options));
    const int64_t slots = random.Integer(1, 12);
    const auto most = static_cast<uint32_t>(random.Integer(1, 60));
    std::map<uint32_t, int64_t> running;  // trial -> its step
    std::map<uint32_t, int64_t> at;       // a paused trial's
    std::map<std::pair<uint32_t, int64_t>, double> values;
    std::set<std::pair<uint32_t, int64_t>> passed;
    std::set<uint32_t> ended;
    uint32_t created = 0;
    for (;;) {
      while (std::ssize(running) < slots) {
        const NextMove move = sweep.Next(created < most, static_cast<int>(running.size()));
        if (const auto* promote = std::get_if<Promote>(&move)) {
          const uint32_t trial = promote->trial.value;
          passed.insert({trial, at.at(trial)});
          running[trial] = at.at(trial);
        } else if (std::holds_alternative<StartNew>(move) && created < most) {
          sweep.Create(created);
          running[created++] = 0;
        } else {
          break;
        }
      }
      if (running.empty()) break;
      const auto chosen = std::next(running.begin(), random.Integer(0, std::ssize(running) - 1));
      const uint32_t trial = chosen->first;
      if (random.Integer(0, 9) == 0) {
        sweep.End(trial);
        ended.insert(trial);
        running.erase(chosen);
        continue;
      }
      const int64_t step = sweep.NextMilestone({trial, chosen->second});
      if (step == 0) {  // trained to max
        sweep.End(trial);
        running.erase(chosen);
        continue;
      }
      const double value = random.Integer(0, 9) == 0 ? kNaN : random.Uniform();
      values[{trial, step}] = value;
      const Verdict& verdict = sweep.Report({trial, step}, value).verdict();
      if (verdict.kind == VerdictKind::kContinue) {
        passed.insert({trial, step});
        chosen->second = step;
      } else {
        running.erase(chosen);
        if (verdict.kind == VerdictKind::kPause) at[trial] = step;
      }
    }
    ASSERT_EQ(created, most) << seed;
    // Each bracket by itself, once all is known.
    uint32_t first = 0;
    while (first < created) {
      for (const BracketShape& shape : HyperBand::Round(options)) {
        const auto beyond = std::min(first + static_cast<uint32_t>(shape.trials), created);
        int64_t going_on = beyond - first;
        for (const Step rung : shape.rungs) {
          going_on = std::max<int64_t>(going_on / options.reduction_factor, 1);
          std::vector<std::pair<double, uint32_t>> best;
          int64_t finite = 0;
          for (uint32_t trial = first; trial < beyond; ++trial) {
            const auto value = values.find({trial, rung.value});
            if (value == values.end() || std::isnan(value->second)) continue;
            ++finite;
            best.emplace_back(-value->second, trial);
          }
          std::ranges::sort(best);
          for (int64_t place = 0; place < finite; ++place) {
            const uint32_t trial = best[static_cast<size_t>(place)].second;
            ASSERT_EQ(passed.contains({trial, rung.value}), place < going_on)
                << "seed " << seed << " trial " << trial << " rung " << rung.value;
          }
        }
        first = beyond;
        if (first == created) break;
      }
    }
  }
}

}  // namespace
}  // namespace attune::schedulers
