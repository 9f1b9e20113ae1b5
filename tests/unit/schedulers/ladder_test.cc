#include "schedulers/ladder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedulers/rung.h"

// The parts of successive halving, without a scheduler.
namespace attune::schedulers {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(Ladder, CountsTheRungsUpToAStep) {
  const Ladder ladder({.min = Step(1), .max = Step(10), .reduction_factor = 3});
  EXPECT_THAT(ladder.steps(), ElementsAre(Step(1), Step(3), Step(9), Step(10)));
  EXPECT_EQ(ladder.CountUpTo(Step(0)), 0u);
  EXPECT_EQ(ladder.CountUpTo(Step(3)), 2u);
  EXPECT_EQ(ladder.CountUpTo(Step(8)), 2u);
  EXPECT_EQ(ladder.CountUpTo(Step(11)), 4u);
}

Rung::Mark MarkOf(double cost, uint32_t order) {
  return {.key = {.cost = cost, .order = order}, .value = cost};
}

TEST(Rung, CountsAMarkThatIsNotRecordedAmongItsPeers) {
  Rung rung(Step(3));
  rung.Record(MarkOf(0.5, 0));
  rung.Record(MarkOf(0.7, 1));
  const Rung::Standing best = rung.StandingOf(MarkOf(0.4, 2), 3);
  EXPECT_EQ(best.rank, 1);
  EXPECT_EQ(best.peers, 3);
  EXPECT_EQ(best.continuing, 1);
  EXPECT_EQ(best.cutoff, 0.4);
  const Rung::Standing middle = rung.StandingOf(MarkOf(0.6, 2), 3);
  EXPECT_EQ(middle.rank, 2);
  EXPECT_EQ(middle.cutoff, 0.5);
}

TEST(Rung, RanksTheEarlierOfEqualCostsFirst) {
  Rung rung(Step(3));
  for (const uint32_t order : {1u, 0u}) rung.Append(MarkOf(0.5, order));
  rung.Sort();
  EXPECT_TRUE(rung.IsAmongBest({.cost = 0.5, .order = 0}, 2));
  EXPECT_FALSE(rung.IsAmongBest({.cost = 0.5, .order = 1}, 2));
}

TEST(Rung, ListsPausedTrialsBestFirst) {
  Rung rung(Step(3));
  rung.Pause({.cost = 0.7, .order = 0}, TrialNumber(4));
  rung.Pause({.cost = 0.5, .order = 1}, TrialNumber(9));
  rung.Pause({.cost = 0.6, .order = 2}, TrialNumber(5));
  rung.Resume({.cost = 0.6, .order = 2});
  EXPECT_THAT(rung.paused(), ElementsAre(Pair(Rung::Key{0.5, 1}, TrialNumber(9)),
                                         Pair(Rung::Key{0.7, 0}, TrialNumber(4))));
}

}  // namespace
}  // namespace attune::schedulers
