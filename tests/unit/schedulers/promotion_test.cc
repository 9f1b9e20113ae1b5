#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "schedulers/asha.h"
#include "tests/support/golden.h"
#include "tests/unit/schedulers/harness.h"

// The form of ASHA that promotes.
namespace attune::schedulers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Asha Promoting(int64_t max = 27, int64_t reduction_factor = 3) {
  return Asha(Maximise("accuracy"), Ladder({Step(1), Step(max), reduction_factor}),
              Asha::Form::kPromote);
}

// Rungs 1, 3, 9 with a third promoted, worked out by hand from algorithm 2 of the paper: one
// worker, whose every free slot asks what to run.
TEST(AshaPromotion, FollowsThePaper) {
  SchedulerHarness sweep(Promoting(9));

  EXPECT_THAT(sweep.Report({0, 1}, 0.5).verdict(), Pauses());  // 1 at rung 1: none is promoted
  EXPECT_EQ(sweep.Promoted(), std::nullopt);
  EXPECT_THAT(sweep.Report({1, 1}, 0.7).verdict(), Pauses());
  EXPECT_EQ(sweep.Promoted(), std::nullopt);
  EXPECT_THAT(sweep.Report({2, 1}, 0.6).verdict(), Pauses());  // the best of 3 continues: trial 1
  EXPECT_THAT(sweep.Promoted(), Optional(1u));
  EXPECT_THAT(sweep.Report({1, 3}, 0.75).verdict(), Pauses());  // alone at rung 3
  EXPECT_EQ(sweep.Promoted(), std::nullopt);
  // One of 4 continues, which is now trial 3, in its own slot.
  EXPECT_THAT(sweep.Report({3, 1}, 0.9).verdict(), Continues());
  EXPECT_THAT(sweep.Report({3, 3}, 0.95).verdict(), Pauses());
  EXPECT_EQ(sweep.Promoted(), std::nullopt);
  EXPECT_THAT(sweep.Report({4, 1}, 0.1).verdict(), Pauses());
  EXPECT_EQ(sweep.Promoted(), std::nullopt);
  EXPECT_THAT(sweep.Report({5, 1}, 0.2).verdict(), Pauses());  // of 6 two: 3 and 1, both are gone
  EXPECT_EQ(sweep.Promoted(), std::nullopt);
  EXPECT_THAT(sweep.Report({6, 1}, 0.3).verdict(), Pauses());
  EXPECT_THAT(sweep.Report({7, 1}, 0.4).verdict(), Pauses());
  EXPECT_THAT(sweep.Report({8, 1}, 0.05).verdict(), Pauses());  // of 9 three: 2 is the third
  EXPECT_THAT(sweep.Promoted(), Optional(2u));
  EXPECT_THAT(sweep.Report({2, 3}, 0.65).verdict(), Pauses());  // of 3 at rung 3 the best: 3
  EXPECT_THAT(sweep.Promoted(), Optional(3u));
  EXPECT_EQ(sweep.promotion().rung, Step(3));
  EXPECT_THAT(sweep.Report({3, 9}, 0.97).verdict(), Continues());  // complete
  EXPECT_THAT(sweep.text(), HasSubstr("completes"));
  EXPECT_EQ(sweep.Promoted(), std::nullopt);
}

TEST(AshaPromotion, ContinuesWithoutAPauseIfItsSlotWouldPromoteIt) {
  SchedulerHarness sweep(Promoting());
  sweep.Report({0, 1}, 0.1).Report({1, 1}, 0.2);
  EXPECT_THAT(sweep.Report({2, 1}, 0.3).verdict(), Continues());
  EXPECT_EQ(sweep.verdict().reason.rank, 1);
  EXPECT_EQ(sweep.verdict().reason.cutoff, 0.3);
}

TEST(AshaPromotion, ABetterPausedTrialGoesFirst) {
  SchedulerHarness sweep(Promoting());
  sweep.Report({0, 1}, 0.1).Report({1, 1}, 0.9).Report({2, 1}, 0.2);
  sweep.Report({3, 1}, 0.3).Report({4, 1}, 0.4);
  EXPECT_THAT(sweep.Report({5, 1}, 0.8).verdict(), Pauses());  // among the best two, after trial 1
  EXPECT_THAT(sweep.Promoted(), Optional(1u));
  EXPECT_THAT(sweep.Promoted(), Optional(5u));
  EXPECT_EQ(sweep.Promoted(), std::nullopt);
}

TEST(AshaPromotion, TheHighestRungGoesFirst) {
  SchedulerHarness sweep(Promoting());
  for (uint32_t i = 0; i < 9; ++i) sweep.Report({i, 1}, 1 - 0.1 * i);
  for (uint32_t i = 0; i < 3; ++i) EXPECT_THAT(sweep.Promoted(), Optional(i));
  for (uint32_t i = 0; i < 3; ++i) sweep.Report({i, 3}, 1 - 0.1 * i);
  for (uint32_t i = 9; i < 12; ++i) sweep.Report({i, 1}, 0);  // one more of rung 1
  EXPECT_THAT(sweep.Promoted(), Optional(0u));
  EXPECT_EQ(sweep.promotion().rung, Step(3));
  EXPECT_THAT(sweep.Promoted(), Optional(3u));
  EXPECT_EQ(sweep.promotion().rung, Step(1));
}

TEST(AshaPromotion, PromotesAnEarlyTrialWhenEnoughWorseOnesArrived) {
  SchedulerHarness sweep(Promoting());
  sweep.Report({0, 1}, 0.5).Report({1, 1}, 0.6);
  EXPECT_THAT(sweep.Report({2, 1}, 0.7).verdict(), Continues());
  for (uint32_t i = 3; i < 6; ++i) sweep.Report({i, 1}, 0.1);
  EXPECT_THAT(sweep.Promoted(), Optional(1u));
  EXPECT_EQ(sweep.promotion().rank, 2);
  EXPECT_EQ(sweep.promotion().peers, 6);
  EXPECT_EQ(sweep.promotion().cutoff, 0.6);
}

TEST(AshaPromotion, PromotesTheEarlierOfEqualValuesUpToTheirShare) {
  SchedulerHarness sweep(Promoting());
  for (uint32_t i = 0; i < 6; ++i) sweep.Report({i, 1}, 0.5);
  EXPECT_THAT(sweep.Promoted(), Optional(0u));
  EXPECT_THAT(sweep.Promoted(), Optional(1u));
  EXPECT_EQ(sweep.Promoted(), std::nullopt);
}

TEST(AshaPromotion, StopsTrialsWithoutAFiniteValue) {
  SchedulerHarness sweep(Promoting());
  for (const double value : {kNaN, kInf, -kInf}) {
    EXPECT_THAT(
        sweep.Report({static_cast<uint32_t>(std::isnan(value) ? 0
                                            : value > 0       ? 1
                                                              : 2),
                      1},
                     value)
            .verdict(),
        Stops("asha"));
  }
  EXPECT_THAT(sweep.Report({3, 1}, -1e300).verdict(), Continues());
}

TEST(AshaPromotion, EndsTheSweepWhenNothingRunsAndNoTrialsCome) {
  SchedulerHarness sweep(Promoting());
  sweep.Report({0, 1}, 0.5);
  EXPECT_TRUE(std::holds_alternative<StartNew>(sweep.Next(true)));
  EXPECT_TRUE(std::holds_alternative<Wait>(sweep.Next(false, 1)));
  const NextMove done = sweep.Next(false);
  ASSERT_TRUE(std::holds_alternative<Done>(done));
  testing::ExpectGolden("schedulers/asha_done", std::get<Done>(done).text + "\n");
}

TEST(AshaPromotion, PromotesNoEndedTrial) {
  SchedulerHarness sweep(Promoting());
  sweep.Report({0, 1}, 0.5).Report({1, 1}, 0.9).Report({2, 1}, 0.1);
  sweep.End(1);
  EXPECT_EQ(sweep.Promoted(), std::nullopt);  // its place at the rung stays taken
}

TEST(AshaPromotion, IsTheSameAfterASnapshot) {
  SchedulerHarness sweep(Promoting());
  for (uint32_t i = 0; i < 6; ++i) sweep.Report({i, 1}, 0.5);
  EXPECT_THAT(sweep.Promoted(), Optional(0u));
  sweep.Restore(Promoting());
  EXPECT_THAT(sweep.Promoted(), Optional(1u));
  EXPECT_EQ(sweep.Promoted(), std::nullopt);
}

SweepSpec Edited(int64_t min, int64_t reduction_factor) {
  return {.objectives = {Maximise("accuracy")},
          .scheduler = {.name = "asha",
                        .options = {{"min", min},
                                    {"mode", std::string("promote")},
                                    {"reduction_factor", reduction_factor},
                                    {"brackets", int64_t{1}}}},
          .max_step = Step(27)};
}

TEST(AshaPromotion, ContinuesATrialPausedBelowTheFirstRungAfterAnEdit) {
  SchedulerHarness sweep(Promoting());
  sweep.Report({0, 1}, 0.1).Report({1, 1}, 0.2);
  sweep.Adapt(Edited(3, 2));
  EXPECT_THAT(sweep.Rungs(), ElementsAre(3, 6, 12, 24, 27));
  EXPECT_THAT(sweep.Promoted(), Optional(0u));
  EXPECT_THAT(sweep.promotion().text, HasSubstr("before rung 3"));
  EXPECT_THAT(sweep.Promoted(), Optional(1u));
  sweep.Report({0, 3}, 0.3);
  EXPECT_THAT(sweep.text(), HasSubstr("rank 1 of 1 at rung 3"));
}

TEST(AshaPromotion, RepeatedEditsRecordNothingTwice) {
  SchedulerHarness sweep(Promoting());
  for (uint32_t i = 0; i < 9; ++i) sweep.Report({i, 1}, 1 - 0.1 * i);
  for (uint32_t i = 0; i < 3; ++i) EXPECT_THAT(sweep.Promoted(), Optional(i));
  for (uint32_t i = 0; i < 3; ++i) sweep.Report({i, 3}, 1 - 0.1 * i);
  for (const int64_t reduction_factor : {4, 3, 4, 2, 4, 3})
    sweep.Adapt(Edited(1, reduction_factor));
  EXPECT_THAT(sweep.Promoted(), Optional(0u));
  EXPECT_THAT(sweep.promotion().text, HasSubstr("rank 1 of 3 at rung 3"));
  EXPECT_EQ(sweep.Promoted(), std::nullopt);
  sweep.Report({9, 1}, 0.0);
  EXPECT_THAT(sweep.text(), HasSubstr("rank 10 of 10 at rung 1"));
}

// Against the paper's own words: of each rung, from the highest, those among the best 1/eta that
// were not promoted yet.
TEST(AshaPromotion, AgreesWithTheDefinitionOverRandomSweeps) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    RandomStream random(seed, TrialNumber(0), "promotion");
    SchedulerHarness sweep(Promoting(27));
    struct Entry {
      uint32_t trial;
      double value;
      bool promoted = false;
    };
    std::map<int64_t, std::vector<Entry>> rungs;
    std::map<uint32_t, int64_t> running;  // trial -> the step that it is promoted from
    uint32_t created = 0;
    const auto expected = [&]() -> std::optional<std::pair<int64_t, uint32_t>> {
      for (const int64_t step : {9, 3, 1}) {
        std::vector<Entry> order = rungs[step];
        std::ranges::stable_sort(order, std::greater(), &Entry::value);
        for (size_t i = 0; i < order.size() / 3; ++i) {
          if (!order[i].promoted) return {{step, order[i].trial}};
        }
      }
      return std::nullopt;
    };
    const auto mark = [&](int64_t step, uint32_t trial) {
      for (Entry& entry : rungs[step]) entry.promoted |= entry.trial == trial;
    };
    for (int move = 0; move < 300; ++move) {
      if (running.size() < 4) {  // a free slot
        const auto want = expected();
        const auto got = sweep.Promoted();
        ASSERT_EQ(got.has_value(), want.has_value()) << seed;
        if (want) {
          ASSERT_EQ(*got, want->second) << seed;
          mark(want->first, *got);
          running[*got] = want->first;
        } else {
          running[created++] = 0;
        }
        continue;
      }
      auto next = std::next(running.begin(), random.Integer(0, 3));
      const uint32_t trial = next->first;
      const int64_t step = next->second == 0 ? 1 : next->second * 3;
      running.erase(next);
      const double value = static_cast<double>(random.Integer(0, 20));
      sweep.Report({trial, step}, value);
      if (step == 27) continue;
      rungs[step].push_back({trial, value});
      const auto want = expected();
      const bool own = want && want->second == trial;
      ASSERT_EQ(sweep.verdict().kind, own ? VerdictKind::kContinue : VerdictKind::kPause) << seed;
      if (own) {
        mark(step, trial);
        running[trial] = step;
      }
    }
  }
}

}  // namespace
}  // namespace attune::schedulers
