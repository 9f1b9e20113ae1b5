#include "schedulers/fifo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedulers/register.h"
#include "tests/unit/schedulers/harness.h"

namespace attune::schedulers {
namespace {

TEST(Fifo, StopsNoTrial) {
  SchedulerHarness sweep{Fifo()};

  EXPECT_THAT(sweep.Report({0, 1}, 0.9).verdict(), Continues());
  EXPECT_THAT(sweep.Report({1, 1}, 0.0).verdict(), Continues());
  EXPECT_EQ(sweep.verdict().reason.rule, "fifo");
  EXPECT_EQ(sweep.verdict().reason.step, Step(1));
}

TEST(Fifo, HasNoMilestones) {
  const SchedulerHarness sweep{Fifo()};

  EXPECT_EQ(sweep.NextMilestone({0, 0}), 0);
  EXPECT_TRUE(sweep.Rungs().empty());
}

TEST(Fifo, IsAlsoKnownAsNone) {
  Algorithms algorithms;
  RegisterSchedulers(algorithms);

  EXPECT_NE(algorithms.FindScheduler("fifo"), nullptr);
  EXPECT_NE(algorithms.FindScheduler("none"), nullptr);
}

}  // namespace
}  // namespace attune::schedulers
