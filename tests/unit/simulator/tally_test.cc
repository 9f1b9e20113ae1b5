#include "simulator/tally.h"

#include <gtest/gtest.h>

namespace attune::simulate {
namespace {

TEST(Tally, CountsOnlyTheTimeInWhichTheSweepRan) {
  Tally tally(SweepSpec{.objectives = {Minimise("loss")}}, {});
  const auto at = [&](int64_t second, Fact fact) {
    tally.Observe({.time = Time{second * 1'000'000}, .fact = std::move(fact)});
    return tally.summary().wall.value;
  };
  const SweepId id(1);
  EXPECT_EQ(at(100, SweepCreated{.sweep = id}), 0);
  EXPECT_EQ(at(110, SweepPaused{.sweep = id}), 10);
  EXPECT_EQ(at(130, SweepResumed{.sweep = id}), 10);
  EXPECT_EQ(at(140, SweepEnded{.sweep = id, .state = SweepState::kCompleted}), 20);
  EXPECT_EQ(at(200, SweepReopened{.sweep = id}), 20);
  EXPECT_EQ(at(205, SweepEnded{.sweep = id, .state = SweepState::kCompleted}), 25);
}

}  // namespace
}  // namespace attune::simulate
