#include <map>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedulers/pbt.h"
#include "tests/support/golden.h"
#include "tests/unit/schedulers/harness.h"

// Population-based training in which all wait for all.
namespace attune::schedulers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

SearchSpace Space() {
  return SearchSpace({{.name = "lr", .domain = FloatDomain{.min = 0.001, .max = 10}}});
}

Pbt Synchronous(int64_t population = 4) {
  return Pbt(Maximise("accuracy"), Space(), 1,
             {.interval = 2,
              .fraction = 0.25,
              .population = population,
              .max_trials = population,
              .exploration = {.resample_probability = 0, .smaller = 1, .larger = 1},
              .max = Step(8),
              .synchronous = true});
}

void Begin(SchedulerHarness& sweep, uint32_t n = 4) {
  for (uint32_t trial = 0; trial < n; ++trial) sweep.Create(trial, {{"lr", trial + 1.0}});
}

// The promotion for a free slot while `running` others run; nullopt if there is none.
std::optional<Promote> Goes(SchedulerHarness& sweep, int running) {
  NextMove move = sweep.Next(/*may_create=*/false, running);
  auto* promote = std::get_if<Promote>(&move);
  return promote == nullptr ? std::nullopt : std::optional(std::move(*promote));
}

TEST(PbtSynchronous, ContinuesNoMemberBeforeAllHaveArrived) {
  SchedulerHarness sweep(Synchronous());
  Begin(sweep);
  for (uint32_t trial = 0; trial < 3; ++trial) {
    sweep.Save({trial, 2}).Report({trial, 2}, 0.5 + 0.1 * trial);
    EXPECT_THAT(sweep.verdict(), Pauses());
    EXPECT_EQ(sweep.verdict().reason.step, Step(2));
    EXPECT_EQ(Goes(sweep, /*running=*/3), std::nullopt);
  }
  sweep.Save({3, 2}).Report({3, 2}, 0.1);
  EXPECT_THAT(sweep.verdict(), Pauses());
  for (uint32_t trial = 0; trial < 3; ++trial) {
    const auto goes = Goes(sweep, static_cast<int>(trial));
    ASSERT_TRUE(goes.has_value());
    EXPECT_EQ(goes->trial, TrialNumber(trial));
    EXPECT_EQ(goes->donor, std::nullopt);
    EXPECT_EQ(goes->reason.peers, 4);
  }
}

TEST(PbtSynchronous, LastMembersCloneTheFirstOfTheSameInterval) {
  SchedulerHarness sweep(Synchronous());
  Begin(sweep);
  for (uint32_t trial = 0; trial < 4; ++trial)
    sweep.Save({trial, 2}).Report({trial, 2}, 0.9 - 0.1 * trial);
  const CheckpointId donor{{SweepId(1), TrialNumber(0)}, 1, Step(2)};
  // The best one continues and reaches its next interval before the last one has a slot.
  EXPECT_TRUE(Goes(sweep, 0).has_value());
  EXPECT_TRUE(Goes(sweep, 1).has_value());
  EXPECT_TRUE(Goes(sweep, 2).has_value());
  sweep.Save({0, 4}, 2).Report({0, 4}, 0.2);
  const auto clones = Goes(sweep, 2);
  ASSERT_TRUE(clones.has_value());
  EXPECT_EQ(clones->trial, TrialNumber(3));
  EXPECT_THAT(clones->donor, Optional(donor));
  EXPECT_THAT(clones->config, Optional(Config{{"lr", 1.0}}));
  EXPECT_EQ(clones->reason.rank, 4);
  testing::ExpectGolden("schedulers/pbt_synchronous", clones->reason.text + "\n");
  EXPECT_EQ(Goes(sweep, 3), std::nullopt);  // trial 0 waits for the others' second interval
}

TrialId Id(uint32_t trial) { return {SweepId(1), TrialNumber(trial)}; }

// Observes facts one after another.
auto Into(Pbt& population) {
  return [&population, seq = uint64_t{0}](Fact fact) mutable {
    population.Observe(Event{EventSeq(++seq), Time{0}, std::move(fact)});
  };
}

TEST(PbtSynchronous, RetainsCheckpointsUntilTheyAreCloned) {
  Pbt population = Synchronous(2);
  auto observe = Into(population);
  for (uint32_t trial : {0u, 1u})
    observe(TrialCreated{.trial = Id(trial), .config = {{"lr", 1.0 + trial}}});
  for (uint32_t trial : {0u, 1u}) {
    const Report report{.step = Step(2), .metrics = {{"accuracy", 0.9 - trial * 0.5}}};
    observe(CheckpointSaved{.attempt = {Id(trial), 1}, .checkpoint = {.step = Step(2)}});
    const Verdict verdict = population.Judge({Id(trial), {}}, report);
    observe(TrialReported{{Id(trial), 1}, report});
    observe(TrialDecided{{Id(trial), 1}, Step(2), verdict, Step(0)});
    EXPECT_THAT(population.Retained(), IsEmpty());
    observe(AttemptEnded{{Id(trial), 1}, Outcome::kPaused, {}});
  }
  const CheckpointId donor{Id(0), 1, Step(2)};
  EXPECT_THAT(population.Retained(), ElementsAre(donor));
  observe(TrialPromoted{.trial = Id(0)});
  EXPECT_THAT(population.Retained(), ElementsAre(donor));
  observe(TrialPromoted{.trial = Id(1), .config = Config{{"lr", 1.0}}, .donor = donor});
  EXPECT_THAT(population.Retained(), IsEmpty());
}

// Nobody was told that its checkpoint was gone: the clone was promoted in vain for ever.
TEST(PbtSynchronous, ContinuesFromItsOwnCheckpointIfTheDonorRestarts) {
  Pbt population = Synchronous(2);
  auto observe = Into(population);
  for (uint32_t trial : {0u, 1u})
    observe(TrialCreated{.trial = Id(trial), .config = {{"lr", 1.0 + trial}}});
  for (uint32_t trial : {0u, 1u}) {
    const Report report{.step = Step(2), .metrics = {{"accuracy", 0.9 - trial * 0.5}}};
    observe(CheckpointSaved{.attempt = {Id(trial), 1}, .checkpoint = {.step = Step(2)}});
    const Verdict verdict = population.Judge({Id(trial), {}}, report);
    observe(TrialReported{{Id(trial), 1}, report});
    observe(TrialDecided{{Id(trial), 1}, Step(2), verdict, Step(0)});
    observe(AttemptEnded{{Id(trial), 1}, Outcome::kPaused, {}});
  }
  observe(TrialPromoted{.trial = Id(0)});
  observe(TrialEnded{Id(0), TrialState::kKilled, "killed on request"});
  observe(TrialReopened{.record = {.id = Id(0), .state = TrialState::kKilled}, .from_start = true});
  EXPECT_THAT(population.Retained(), IsEmpty());
  const std::map<TrialNumber, Step> paused = {{TrialNumber(1), Step(2)}};
  const NextMove move = population.Next({.paused = paused, .running = 1, .created = 2});
  EXPECT_EQ(std::get<Promote>(move).donor, std::nullopt);
}

TEST(PbtSynchronous, CountsAMemberWhoseGangIsLostWhileItLeaves) {
  Pbt population = Synchronous(2);
  auto observe = Into(population);
  std::map<TrialNumber, Step> paused;
  for (uint32_t trial : {0u, 1u})
    observe(TrialCreated{.trial = Id(trial), .config = {{"lr", 1.0 + trial}}});
  for (uint32_t trial : {0u, 1u}) {
    const Report report{.step = Step(2), .metrics = {{"accuracy", 0.9 - trial * 0.5}}};
    const Verdict verdict = population.Judge({Id(trial), {}}, report);
    observe(TrialReported{{Id(trial), 1}, report});
    observe(TrialDecided{{Id(trial), 1}, Step(2), verdict, Step(0)});
    observe(AttemptEnded{{Id(trial), 1}, trial == 0 ? Outcome::kPaused : Outcome::kLost, {}});
    paused[TrialNumber(trial)] = Step(2);
  }
  const NextMove move = population.Next({.paused = paused, .running = 0, .created = 2});
  EXPECT_THAT(std::get<Promote>(move).reason.text, HasSubstr("rank 1 of 2"));
}

TEST(PbtSynchronous, DoesNotWaitForEndedMembers) {
  SchedulerHarness sweep(Synchronous());
  Begin(sweep);
  sweep.Save({0, 2}).Report({0, 2}, 0.9).Save({1, 2}).Report({1, 2}, 0.5);
  sweep.Save({2, 2}).Report({2, 2}, 0.4);
  EXPECT_EQ(Goes(sweep, 1), std::nullopt);
  sweep.End(3, TrialState::kFailed);  // and max_trials has no room for another
  EXPECT_TRUE(Goes(sweep, 0).has_value());
  EXPECT_TRUE(Goes(sweep, 1).has_value());
  const auto clones = Goes(sweep, 2);
  ASSERT_TRUE(clones.has_value());
  EXPECT_TRUE(clones->donor.has_value());
}

TEST(PbtSynchronous, ContinuesAWaitingMemberIfNoOtherCanArrive) {
  SchedulerHarness sweep(Synchronous());
  Begin(sweep);
  sweep.Save({0, 2}).Report({0, 2}, 0.9);
  EXPECT_EQ(Goes(sweep, 1), std::nullopt);
  const auto goes = Goes(sweep, 0);
  ASSERT_TRUE(goes.has_value());
  EXPECT_EQ(goes->trial, TrialNumber(0));
}

TEST(PbtSynchronous, IsTheSameAfterASnapshotAtAnyMoment) {
  const auto run = [](bool restarts) {
    SchedulerHarness sweep(Synchronous());
    Begin(sweep);
    std::string texts;
    for (const int64_t step : {2, 4, 6}) {
      for (uint32_t trial = 0; trial < 4; ++trial) {
        sweep.Save({trial, step}, step == 2 ? 1 : 2);
        sweep.Report({trial, step}, 0.1 * trial * static_cast<double>(step % 4));
        texts += sweep.text() + "\n";
        if (restarts) sweep.Restore(Synchronous());
      }
      for (int running = 0; running < 4; ++running) {
        if (const auto goes = Goes(sweep, running)) texts += goes->reason.text + "\n";
        if (restarts) sweep.Restore(Synchronous());
      }
    }
    return texts;
  };
  EXPECT_EQ(run(true), run(false));
  EXPECT_THAT(run(false), HasSubstr("clones"));
}

}  // namespace
}  // namespace attune::schedulers
