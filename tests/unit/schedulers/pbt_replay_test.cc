#include "schedulers/pbt_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/schedulers/harness.h"

namespace attune::schedulers {
namespace {

using ::testing::HasSubstr;

Config Lr(double lr) { return {{"lr", lr}}; }

PbtReplay Replay() { return PbtReplay({{Step(4), Lr(0.2)}, {Step(8), Lr(0.3)}}); }

SweepSpec Spec(const std::string& schedule) {
  return {.objectives = {Maximise("accuracy")},
          .space = SearchSpace({{.name = "lr", .domain = FloatDomain{.min = 0, .max = 1}}}),
          .scheduler = {.name = "pbt_replay", .options = {{"schedule", schedule}}}};
}

TEST(PbtReplay, PausesAtEachStepAndContinuesWithTheNextConfiguration) {
  SchedulerHarness sweep(Replay());
  EXPECT_EQ(sweep.NextMilestone({0, 0}), 4);
  EXPECT_EQ(sweep.NextMilestone({0, 4}), 8);
  EXPECT_EQ(sweep.NextMilestone({0, 8}), 0);
  EXPECT_THAT(sweep.Report({0, 2}, 0.5).verdict(), Continues());
  EXPECT_THAT(sweep.Report({0, 4}, 0.5).verdict(), Pauses());
  EXPECT_THAT(sweep.text(), ::testing::AllOf(HasSubstr("step 4"), HasSubstr("lr")));
  const NextMove move = sweep.Next();
  ASSERT_TRUE(std::holds_alternative<Promote>(move));
  EXPECT_EQ(std::get<Promote>(move).config, Lr(0.2));
  EXPECT_FALSE(std::get<Promote>(move).donor);
  EXPECT_TRUE(std::holds_alternative<StartNew>(sweep.Next()));
}

TEST(PbtReplay, AReportThatPassesSeveralStepsUsesTheLast) {
  SchedulerHarness sweep(Replay());
  EXPECT_THAT(sweep.Report({0, 11}, 0.5).verdict(), Pauses());
  EXPECT_EQ(std::get<Promote>(sweep.Next()).config, Lr(0.3));
}

TEST(PbtReplay, AnEqualConfigurationChangesNothing) {
  PbtReplay replay = Replay();
  const Config config = Lr(0.2);
  const TrialView trial{{SweepId(1), TrialNumber(0)}, config};
  EXPECT_EQ(replay.Judge(trial, {.step = Step(5)}).kind, VerdictKind::kContinue);
  EXPECT_EQ(replay.Judge(trial, {.step = Step(8)}).kind, VerdictKind::kPause);
}

TEST(PbtReplay, AnEditAppliesToLaterSteps) {
  PbtReplay replay = Replay();
  replay.Adapt(Spec("6: lr=0.5"));
  const Config config = Lr(0.1);
  EXPECT_EQ(replay.NextMilestone({{SweepId(1), TrialNumber(0)}, config}, Step(4)), Step(6));
}

TEST(PbtReplay, NamesTheKeyOfAnInvalidSchedule) {
  EXPECT_TRUE(PbtReplayEntry().make(Spec("6: lr=0.5")).ok());
  EXPECT_THAT(PbtReplayEntry().make(Spec("6: lr=5")).error().message,
              HasSubstr("scheduler.schedule: at step 6, "));
}

}  // namespace
}  // namespace attune::schedulers
