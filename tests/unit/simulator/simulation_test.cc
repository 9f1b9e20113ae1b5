#include "simulator/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/result.h"
#include "cli/algorithms.h"
#include "searchers/register.h"
#include "tests/sim/toys.h"

namespace attune::simulate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Trial n reports the value n at every step.
class Numbers : public Curves {
 public:
  double ValueAt(TrialNumber trial, const Config&, Step) const override { return trial.value; }
};

class NumbersThatEnd final : public Numbers {
 public:
  Step LastStep(TrialNumber trial) const override { return Step(trial.value + 1); }
  std::optional<Seconds> SecondsOf(TrialNumber, Step) const override { return Seconds(10); }
};

// Trials with larger numbers take longer.
class SlowNumbers final : public Numbers {
 public:
  std::optional<Seconds> SecondsOf(TrialNumber trial, Step) const override {
    return Seconds(trial.value + 1);
  }
};

SweepSpec Spec(int max_trials, int64_t max_step) {
  return {.name = "planned",
          .program = {.command = {"train"}},
          .objectives = {Minimise("loss")},
          .space = SearchSpace({{.name = "lr", .domain = FloatDomain{.min = 0, .max = 1}}}),
          .searcher = {.name = "random"},
          .scheduler = {.name = "fifo"},
          .max_step = Step(max_step),
          .stop = {.max_trials = max_trials}};
}

SweepSpec Asha(int max_trials, int64_t max_step) {
  SweepSpec spec = Spec(max_trials, max_step);
  spec.scheduler = {.name = "asha",
                    .options = {{"min", int64_t{1}},
                                {"mode", std::string("stop")},
                                {"reduction_factor", int64_t{3}},
                                {"brackets", int64_t{1}}}};
  return spec;
}

Result<Summary> Simulated(const SweepSpec& spec, const Assumptions& assumed,
                          const Curves& curves = Numbers()) {
  return Simulate(spec, cli::AllAlgorithms(), curves, assumed);
}

TEST(Simulation, TrialsTakeTurnsOnTheSlots) {
  const Summary summary = Simulated(Spec(5, 10), {.slots = 2, .step = Seconds(3)}).value();
  EXPECT_EQ(summary.state, SweepState::kCompleted);
  EXPECT_EQ(summary.Count(TrialState::kCompleted), 5);
  EXPECT_EQ(summary.wall.value, 3 * 30);
  EXPECT_EQ(summary.slot_seconds, 5 * 30);
  EXPECT_EQ(summary.peak_slots, 2);
  EXPECT_EQ(summary.steps, 50);
  EXPECT_EQ(summary.steps_in_full, 50);
}

TEST(Simulation, AGangOccupiesOneSlotPerRank) {
  SweepSpec spec = Spec(2, 1);
  spec.gang.workers = 3;
  const Summary summary = Simulated(spec, {.slots = 5}).value();
  EXPECT_EQ(summary.peak_slots, 3);
  EXPECT_EQ(summary.wall.value, 2);
}

TEST(Simulation, AGangRunsOnOneExecutor) {
  SweepSpec spec = Spec(2, 1);
  spec.gang.workers = 3;
  EXPECT_EQ(Simulated(spec, {.slots = 6, .executors = 1}).value().wall.value, 1);
  EXPECT_THAT(Simulated(spec, {.slots = 6, .executors = 3}).error().message,
              AllOf(HasSubstr("3 workers"), HasSubstr("2 slots")));
}

TEST(Simulation, ARankWithoutResourcesOccupiesASlot) {
  SweepSpec spec = Spec(4, 1);
  spec.gang.per_worker = {};
  EXPECT_EQ(Simulated(spec, {.slots = 2}).value().peak_slots, 2);
}

TEST(Simulation, ExecutorsHaveTheRequiredLabels) {
  SweepSpec spec = Spec(2, 1);
  spec.gang.required = {{"gpu", {"h100"}}};
  EXPECT_EQ(Simulated(spec, {.slots = 2}).value().Count(TrialState::kCompleted), 2);
}

TEST(Simulation, TheFirstOfEqualReportsIsTheBest) {
  const Summary summary = Simulated(Spec(4, 2), {.slots = 1}).value();
  ASSERT_TRUE(summary.best);
  EXPECT_EQ(summary.best->trial, TrialNumber(0));
  EXPECT_EQ(summary.best->step, Step(1));
  EXPECT_EQ(summary.best->at.value, 1);
}

// One trial after another, each worse than all before: every third slot of a rung is trial 0's.
TEST(Simulation, AshaStopsAtItsRungs) {
  const Summary summary = Simulated(Asha(9, 9), {.slots = 1}).value();
  ASSERT_EQ(summary.rungs.size(), 3);
  EXPECT_EQ(summary.rungs[0].reached, 9);
  EXPECT_EQ(summary.rungs[0].stopped, 7);
  EXPECT_EQ(summary.rungs[1].reached, 2);
  EXPECT_EQ(summary.rungs[1].stopped, 0);
  EXPECT_EQ(summary.rungs[2].step, Step(9));
  EXPECT_EQ(summary.rungs[2].reached, 2);
  EXPECT_EQ(summary.rungs[2].stopped, 0);
  EXPECT_EQ(summary.Count(TrialState::kCompleted), 2);
  EXPECT_EQ(summary.Count(TrialState::kStopped), 7);
  EXPECT_EQ(summary.steps, 2 * 9 + 7);
  EXPECT_EQ(summary.steps_in_full, 9 * 9);
}

TEST(Simulation, ALimitEndsTheSweep) {
  SweepSpec spec = Spec(0, 10);
  spec.stop.max_time = Seconds(25.5);
  const Summary summary = Simulated(spec, {.slots = 4}).value();
  EXPECT_EQ(summary.wall.value, 26);  // running trials stop at their next report
  EXPECT_EQ(summary.Count(TrialState::kCompleted), 8);
  EXPECT_EQ(summary.Count(TrialState::kStopped), 4);
  EXPECT_THAT(summary.reason, HasSubstr("max_time"));
}

TEST(Simulation, CountsTheGpuHoursOfOccupiedSlots) {
  SweepSpec spec = Spec(0, 100);
  spec.gang.per_worker.gpus = 2;
  spec.stop.max_gpu_hours = 2;
  const Summary summary = Simulated(spec, {.slots = 4, .step = Seconds(35)}).value();
  EXPECT_EQ(summary.slot_seconds, 4 * 26 * 35);
  EXPECT_THAT(summary.reason, HasSubstr("max_gpu_hours"));
}

template <class Toy>
Summary SimulatedWithToy(SweepSpec spec, int slots, const Curves& curves) {
  Algorithms algorithms;
  searchers::RegisterSearchers(algorithms);
  algorithms.Add(Entry<Scheduler>{
      .name = "toy", .make = [](const SweepSpec& made) -> Result<std::unique_ptr<Scheduler>> {
        return {std::make_unique<Toy>(made.objective())};
      }});
  spec.scheduler = {.name = "toy"};
  return Simulate(spec, algorithms, curves, {.slots = slots}).value();
}

TEST(Simulation, APausedTrialResumesFromItsLastStep) {
  const Summary summary = SimulatedWithToy<sim::PausingHalving>(Spec(8, 4), 2, Numbers());
  EXPECT_EQ(summary.Count(TrialState::kCompleted), 4);
  EXPECT_EQ(summary.Count(TrialState::kStopped), 4);
  EXPECT_EQ(summary.slot_seconds, summary.steps);  // no step was trained twice
}

TEST(Simulation, AClonedTrialResumesFromTheDonorsCheckpoint) {
  const Summary summary = SimulatedWithToy<sim::ExploitScheduler>(Spec(4, 16), 4, SlowNumbers());
  EXPECT_EQ(summary.Count(TrialState::kCompleted), 4);
  EXPECT_LT(summary.steps, summary.steps_in_full);
}

TEST(Simulation, CurvesDecideTheLastStepAndTheDuration) {
  const Summary summary = Simulated(Spec(3, 0), {.slots = 1}, NumbersThatEnd()).value();
  EXPECT_EQ(summary.Count(TrialState::kCompleted), 3);
  EXPECT_EQ(summary.steps, 1 + 2 + 3);
  EXPECT_EQ(summary.steps_in_full, 1 + 2 + 3);
  EXPECT_EQ(summary.wall.value, 60);
}

TEST(Simulation, EqualSeedsGiveEqualSummaries) {
  SweepSpec spec = Asha(50, 27);
  const auto run = [&](uint64_t seed) {
    spec.seed = seed;
    const auto curves = MakeCurves("mixed", spec.objective(), spec.space, spec.max_step, seed);
    return Simulated(spec, {.slots = 7}, **curves).value();
  };
  const Summary one = run(1);
  const Summary again = run(1);
  EXPECT_EQ(one.best->value, again.best->value);
  EXPECT_EQ(one.steps, again.steps);
  EXPECT_EQ(one.wall, again.wall);
  EXPECT_NE(one.best->value, run(2).best->value);
}

TEST(Simulation, RefusesASweepWithoutACommand) {
  SweepSpec spec = Spec(1, 1);
  spec.program = {};
  EXPECT_THAT(Simulated(spec, {}).error().message, HasSubstr("`command`"));
}

TEST(Simulation, RefusesTooManyGpus) {
  SweepSpec spec = Spec(1, 1);
  spec.gang.per_worker.gpus = 1'000'000'000;
  EXPECT_THAT(Simulated(spec, {}).error().message, HasSubstr("8000000000 GPUs"));
}

TEST(Simulation, RefusesModelCurvesWithoutALastStep) {
  EXPECT_THAT(Simulated(Spec(1, 0), {}).error().message, HasSubstr("scheduler.max"));
}

TEST(Simulation, RefusesAnEndlessSweep) {
  SweepSpec spec = Spec(0, 1);
  spec.stop.targets = {-1};
  EXPECT_THAT(Simulated(spec, {.endless_trials = 100}).error().message,
              HasSubstr("stop.max_trials"));
}

}  // namespace
}  // namespace attune::simulate
