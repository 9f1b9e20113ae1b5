#include "core/analysis/cost.h"

#include <gtest/gtest.h>

namespace attune {
namespace {

constexpr int64_t kMinuteUs = 60'000'000;

Time At(int64_t minutes) { return Time{minutes * kMinuteUs}; }

// An attempt with one GPU.
AttemptUse OneGpu(int64_t from, int64_t to) {
  return {.workers = 1, .gpus = 1, .begin = At(from), .end = At(to)};
}

SweepCost CostOf(const TrialUse& trial, int64_t last_step = 0, int64_t now = 1'000) {
  return attune::CostOf(std::vector{trial}, Step(last_step), At(now));
}

TEST(Cost, CountsTheHoursOfEachGpu) {
  AttemptUse attempt = OneGpu(0, 90);
  attempt.gpus = 4;
  const SweepCost cost = CostOf({.attempts = {attempt}});
  EXPECT_TRUE(cost.has_gpus);
  EXPECT_DOUBLE_EQ(cost.used_hours, 6);
  EXPECT_DOUBLE_EQ(cost.wasted_hours, 0);
  EXPECT_EQ(cost.attempts, 1);
}

TEST(Cost, CountsPartsOfGpus) {
  AttemptUse attempt = OneGpu(0, 60);
  attempt.gpus = 0.25;
  EXPECT_DOUBLE_EQ(CostOf({.attempts = {attempt}}).used_hours, 0.25);
}

TEST(Cost, CountsWorkersWithoutGpus) {
  const SweepCost cost = CostOf({.attempts = {{.workers = 3, .begin = At(0), .end = At(60)},
                                              {.workers = 0, .begin = At(60), .end = At(120)}}});
  EXPECT_FALSE(cost.has_gpus);
  EXPECT_DOUBLE_EQ(cost.used_hours, 4) << "an attempt outside Attune counts as one worker";
}

TEST(Cost, CountsARunningAttemptUpToNow) {
  AttemptUse attempt = OneGpu(0, 0);
  attempt.end.reset();
  const SweepCost cost = CostOf({.attempts = {attempt}}, 0, 30);
  EXPECT_DOUBLE_EQ(cost.used_hours, 0.5);
  EXPECT_DOUBLE_EQ(cost.wasted_hours, 0);
  EXPECT_EQ(cost.running, 1);
}

TEST(Cost, IsNeverNegative) {
  AttemptUse attempt = OneGpu(60, 0);
  attempt.broken = true;
  attempt.checkpoints = {{Step(4), At(30)}};
  AttemptUse running = OneGpu(90, 0);
  running.end.reset();
  running.seconds = Seconds(-5);
  running.last_step = Step(9);
  const SweepCost cost =
      CostOf({.stopped = true, .last_step = Step(9), .attempts = {attempt, running}}, 4, 60);
  EXPECT_DOUBLE_EQ(cost.used_hours, 0);
  EXPECT_DOUBLE_EQ(cost.wasted_hours, 0);
  EXPECT_DOUBLE_EQ(*cost.saved_hours, 0);
}

// ---- wasted ------------------------------------------------------------------------------------

TEST(Cost, WastesTheTimeAfterTheCheckpointThatTheNextAttemptUsed) {
  AttemptUse first = OneGpu(0, 60);
  first.broken = true;
  first.checkpoints = {{Step(1), At(20)}, {Step(2), At(40)}, {Step(3), At(50)}};
  AttemptUse second = OneGpu(60, 120);
  second.resumed_from = Step(2);
  const SweepCost cost = CostOf({.attempts = {first, second}});
  EXPECT_DOUBLE_EQ(cost.used_hours, 2);
  EXPECT_DOUBLE_EQ(cost.wasted_hours, 20.0 / 60) << "from minute 40 to minute 60";
  EXPECT_EQ(cost.broken, 1);
}

TEST(Cost, WastesAnAttemptThatIsRepeatedFromTheStart) {
  AttemptUse first = OneGpu(0, 60);
  first.broken = true;
  EXPECT_DOUBLE_EQ(CostOf({.attempts = {first, OneGpu(60, 120)}}).wasted_hours, 1);
}

TEST(Cost, WastesAPauseWithoutCheckpoint) {
  EXPECT_DOUBLE_EQ(CostOf({.attempts = {OneGpu(0, 60), OneGpu(60, 90)}}).wasted_hours, 1);
}

TEST(Cost, WastesNothingIfEachAttemptContinues) {
  AttemptUse first = OneGpu(0, 60);
  first.checkpoints = {{Step(3), At(60)}};
  AttemptUse second = OneGpu(90, 120);
  second.resumed_from = Step(3);
  EXPECT_DOUBLE_EQ(CostOf({.attempts = {first, second}}).wasted_hours, 0);
}

// The third attempt lost the checkpoint of the second one.
TEST(Cost, CountsEachRepeatedHourOnce) {
  AttemptUse first = OneGpu(0, 60);
  first.broken = true;
  first.checkpoints = {{Step(1), At(30)}, {Step(2), At(45)}};
  AttemptUse second = OneGpu(60, 120);
  second.broken = true;
  second.resumed_from = Step(2);
  second.checkpoints = {{Step(3), At(110)}};
  AttemptUse third = OneGpu(120, 180);
  third.resumed_from = Step(1);
  const SweepCost cost = CostOf({.attempts = {first, second, third}});
  EXPECT_DOUBLE_EQ(cost.used_hours, 3);
  EXPECT_DOUBLE_EQ(cost.wasted_hours, 0.5 + 1) << "first from minute 30, second whole";
}

TEST(Cost, ABrokenAttemptWithoutSuccessorWastesTheTimeAfterItsNewestCheckpoint) {
  AttemptUse first = OneGpu(0, 60);
  first.checkpoints = {{Step(5), At(60)}};
  AttemptUse second = OneGpu(60, 120);
  second.resumed_from = Step(5);
  second.broken = true;
  EXPECT_DOUBLE_EQ(CostOf({.attempts = {first, second}}).wasted_hours, 1)
      << "it saved none, and the first attempt is still useful";
  second.checkpoints = {{Step(6), At(75)}, {Step(7), At(90)}};
  EXPECT_DOUBLE_EQ(CostOf({.attempts = {first, second}}).wasted_hours, 0.5);
}

TEST(Cost, TrainingBeforeAClonedCheckpointIsNotWasted) {
  AttemptUse first = OneGpu(0, 60);
  first.checkpoints = {{Step(6), At(60)}};
  AttemptUse clone = OneGpu(60, 120);
  clone.resumed_from = Step(4);
  clone.cloned = true;
  clone.broken = true;
  AttemptUse again = OneGpu(120, 180);
  again.resumed_from = Step(4);
  EXPECT_DOUBLE_EQ(CostOf({.attempts = {first, clone, again}}).wasted_hours, 1)
      << "only the clone that failed before it saved a checkpoint";
}

// ---- saved -------------------------------------------------------------------------------------

TEST(Cost, AStoppedTrialSavesItsRemainingSteps) {
  AttemptUse attempt = OneGpu(0, 60);
  attempt.gpus = 2;
  attempt.last_step = Step(10);
  attempt.seconds = Seconds(1'800);
  const SweepCost cost =
      CostOf({.stopped = true, .last_step = Step(10), .attempts = {attempt}}, 81);
  EXPECT_DOUBLE_EQ(*cost.saved_hours, 71 * 180.0 / 3600 * 2);
  EXPECT_EQ(cost.stopped, 1);
}

TEST(Cost, RepeatedStepsDoNotMakeTheAverageStepLonger) {
  AttemptUse first = OneGpu(0, 20);
  first.last_step = Step(10);
  first.seconds = Seconds(1'000);
  first.broken = true;
  AttemptUse second = OneGpu(20, 50);
  second.last_step = Step(20);
  second.seconds = Seconds(2'000);
  const SweepCost cost =
      CostOf({.stopped = true, .last_step = Step(20), .attempts = {first, second}}, 56);
  EXPECT_DOUBLE_EQ(*cost.saved_hours, 36 * 100.0 / 3600);
}

TEST(Cost, OtherTrialsSaveNothing) {
  AttemptUse attempt = OneGpu(0, 60);
  attempt.last_step = Step(10);
  attempt.seconds = Seconds(1'800);
  EXPECT_DOUBLE_EQ(*CostOf({.last_step = Step(10), .attempts = {attempt}}, 81).saved_hours, 0);
  EXPECT_DOUBLE_EQ(
      *CostOf({.stopped = true, .last_step = Step(99), .attempts = {attempt}}, 81).saved_hours, 0)
      << "a limit was lowered below its step";
  EXPECT_DOUBLE_EQ(*CostOf({.stopped = true}, 81).saved_hours, 0) << "it never started";
}

TEST(Cost, WithoutALastStepTheSavedHoursAreUnknown) {
  EXPECT_FALSE(CostOf({.stopped = true}).saved_hours);
}

}  // namespace
}  // namespace attune
