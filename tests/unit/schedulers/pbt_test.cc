#include "schedulers/pbt.h"

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "tests/support/golden.h"
#include "tests/unit/schedulers/harness.h"

namespace attune::schedulers {
namespace {

using ::testing::AllOf;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::StartsWith;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

SearchSpace Space() {
  return SearchSpace({{.name = "lr", .domain = FloatDomain{.min = 0.001, .max = 10}}});
}

// Four members, of which the last clones the first; it takes the configuration as it is.
Pbt::Options Four() {
  return {.interval = 2,
          .fraction = 0.25,
          .population = 4,
          .exploration = {.resample_probability = 0, .smaller = 1, .larger = 1},
          .max = Step(20)};
}

Pbt Population(Pbt::Options options = Four()) {
  return Pbt(Maximise("accuracy"), Space(), 1, options);
}

CheckpointId Checkpoint(uint32_t trial, uint32_t attempt, int64_t step) {
  return {{SweepId(1), TrialNumber(trial)}, attempt, Step(step)};
}

auto Clones(const CheckpointId& donor, double lr) {
  return AllOf(Field("kind", &Verdict::kind, VerdictKind::kExploit),
               Field("donor", &Verdict::donor, donor),
               Field("config", &Verdict::config, Config{{"lr", lr}}));
}

// Trials 0 … n-1 with a learning rate of 1, 2, …
void Begin(SchedulerHarness& sweep, uint32_t n = 4) {
  for (uint32_t trial = 0; trial < n; ++trial) sweep.Create(trial, {{"lr", trial + 1.0}});
}

// Worked out by hand: of one member nobody is the last; of two to four one is.
TEST(Pbt, FollowsThePaper) {
  SchedulerHarness sweep(Population());
  Begin(sweep);

  EXPECT_EQ(sweep.NextMilestone({0, 0}), 2);
  EXPECT_THAT(sweep.Report({0, 2}, 0.5).verdict(), Continues());
  sweep.Save({0, 2});
  EXPECT_EQ(sweep.verdict().reason.rank, 1);
  EXPECT_EQ(sweep.verdict().reason.peers, 1);
  std::string texts = sweep.text() + "\n";
  EXPECT_THAT(sweep.Report({1, 2}, 0.9).verdict(), Continues());
  EXPECT_THAT(sweep.Report({2, 2}, 0.7).verdict(), Continues());
  sweep.Save({2, 2});
  // The last of 0.9 0.7 0.5 0.1. The first, trial 1, has no checkpoint yet.
  EXPECT_THAT(sweep.Report({3, 2}, 0.1).verdict(), Continues());
  EXPECT_EQ(sweep.verdict().reason.rank, 4);
  texts += sweep.text() + "\n";
  sweep.Save({1, 2});
  EXPECT_THAT(sweep.Report({0, 4}, 0.6).verdict(), Continues());  // third of four
  EXPECT_THAT(sweep.Report({3, 4}, 0.2).verdict(), Clones(Checkpoint(1, 1, 2), 2.0));
  EXPECT_EQ(sweep.verdict().reason.cutoff, 0.6);
  testing::ExpectGolden("schedulers/pbt", texts + sweep.text() + "\n");
  EXPECT_EQ(sweep.NextMilestone({3, 2}), 4);  // it continues at the donor's step

  // A clone is not ranked before its next decision, so the last of 0.9 0.7 0.6 clones.
  EXPECT_THAT(sweep.Report({2, 4}, 0.55).verdict(), Clones(Checkpoint(1, 1, 2), 2.0));
  EXPECT_EQ(sweep.verdict().reason.peers, 3);
  // It has the weights of trial 1 and the value 2.0, so it is the first now.
  EXPECT_THAT(sweep.Report({3, 4}, 0.95).verdict(), Continues());
  sweep.Save({3, 4}, 2);
  EXPECT_THAT(sweep.Report({0, 6}, 0.4).verdict(), Clones(Checkpoint(3, 2, 4), 2.0));
}

// Four members that gain the more the smaller their learning rate is, at each of four decisions.
TEST(Pb2, ChoosesTheNumbersOfAClonePromisingToTheModel) {
  Pbt::Options options = Four();
  options.bandit = true;
  SchedulerHarness sweep(Population(options));
  Begin(sweep);
  sweep.Report({0, 2}, 0.5).Save({0, 2}).Report({1, 2}, 0.5).Report({2, 2}, 0.5);
  sweep.Report({3, 2}, 0.1);
  EXPECT_EQ(sweep.verdict().reason.rule, "pb2");
  EXPECT_THAT(sweep.verdict(), Clones(Checkpoint(0, 1, 2), 1.0));
  testing::ExpectGolden("schedulers/pb2", sweep.text() + "\n");
  for (int64_t step = 4; step <= 6; step += 2) {
    const double intervals = static_cast<double>(step) / 2 - 1;
    sweep.Report({0, step}, 0.5 + 0.2 * intervals).Save({0, step});
    sweep.Report({1, step}, 0.5 + 0.1 * intervals);
    if (step == 4) sweep.Report({2, step}, 0.6 - 0.01 * intervals);
  }
  EXPECT_THAT(sweep.Report({2, 6}, 0.55).verdict(),
              Field("kind", &Verdict::kind, VerdictKind::kExploit));
  EXPECT_THAT(sweep.text(), AllOf(HasSubstr("clones trial 0 of step 6"),
                                  HasSubstr("explores lr 1 → "), HasSubstr(" 5 gains ")));
}

TEST(Pbt, SmallerIsBetterWhenMinimising) {
  SchedulerHarness sweep(Pbt(Minimise("loss"), Space(), 1, Four()), "loss");
  Begin(sweep);
  sweep.Report({0, 2}, 0.1).Save({0, 2}).Report({1, 2}, 0.2).Report({2, 2}, 0.3);
  EXPECT_THAT(sweep.Report({3, 2}, 0.4).verdict(), Clones(Checkpoint(0, 1, 2), 1.0));
}

TEST(Pbt, ACheckpointFromBeforeTheCloneIsNoDonor) {
  SchedulerHarness sweep(Population());
  Begin(sweep);
  sweep.Report({0, 2}, 0.9).Save({0, 2}).Report({1, 2}, 0.5).Report({2, 2}, 0.6);
  sweep.Report({3, 2}, 0.1);
  EXPECT_EQ(sweep.verdict().kind, VerdictKind::kExploit);
  sweep.Save({3, 2}, 1);      // of the attempt that leaves
  sweep.Report({3, 4}, 2.0);  // the clone is the first, and has saved nothing
  EXPECT_THAT(sweep.Report({1, 4}, 0.1).verdict(), Continues());
  sweep.Save({3, 4}, 2);
  EXPECT_THAT(sweep.Report({1, 6}, 0.1).verdict(), Clones(Checkpoint(3, 2, 4), 1.0));
}

TEST(Pbt, ADeletedCheckpointIsNotCloned) {
  SchedulerHarness sweep(Population());
  Begin(sweep);
  sweep.Report({0, 2}, 0.9).Save({0, 2}).Drop(Checkpoint(0, 1, 2));
  sweep.Report({1, 2}, 0.5).Report({2, 2}, 0.6);
  EXPECT_THAT(sweep.Report({3, 2}, 0.1).verdict(), Continues());
}

TEST(Pbt, EndedTrialsAreNeitherRankedNorCloned) {
  SchedulerHarness sweep(Population());
  Begin(sweep);
  sweep.Report({1, 2}, 0.5).Save({1, 2}).Report({0, 2}, 0.9).Save({0, 2});
  sweep.End(0, TrialState::kCompleted);
  EXPECT_THAT(sweep.Report({2, 2}, 0.4).verdict(), Clones(Checkpoint(1, 1, 2), 2.0));
  EXPECT_EQ(sweep.verdict().reason.peers, 2);
}

TEST(Pbt, ANanTrialClonesAndStopsNoOther) {
  SchedulerHarness sweep(Population());
  Begin(sweep);
  sweep.Report({0, 2}, kNaN).Save({0, 2});
  EXPECT_THAT(sweep.Report({1, 2}, 0.1).verdict(), Continues());
  sweep.Save({1, 2});
  EXPECT_THAT(sweep.Report({0, 4}, kNaN).verdict(), Clones(Checkpoint(1, 1, 2), 2.0));
  EXPECT_THAT(sweep.Report({2, 2}, kNaN).verdict(), Clones(Checkpoint(1, 1, 2), 2.0));
  EXPECT_THAT(sweep.Report({3, 2}, kNaN).verdict(), Clones(Checkpoint(1, 1, 2), 2.0));
}

TEST(Pbt, ClonesNoTrialIfAllAreNan) {
  SchedulerHarness sweep(Population());
  Begin(sweep);
  for (uint32_t trial = 0; trial < 4; ++trial) {
    EXPECT_THAT(sweep.Report({trial, 2}, kNaN).verdict(), Continues());
    sweep.Save({trial, 2});
  }
}

TEST(Pbt, ClonesNoTrialIfAllAreEqual) {
  SchedulerHarness sweep(Population());
  Begin(sweep);
  for (uint32_t trial = 0; trial < 4; ++trial) {
    EXPECT_THAT(sweep.Report({trial, 2}, 0.5).verdict(), Continues());
    sweep.Save({trial, 2});
  }
  EXPECT_EQ(sweep.verdict().reason.rank, 4);
}

TEST(Pbt, ARepeatedOrEarlierStepIsNeitherJudgedNorRecorded) {
  SchedulerHarness sweep(Population());
  Begin(sweep);
  sweep.Report({0, 2}, 0.5).Report({0, 4}, 0.6);
  for (const int64_t step : {4, 3, 2}) {
    EXPECT_THAT(sweep.Report({0, step}, 9).verdict(), Continues());
    EXPECT_EQ(sweep.verdict().reason.rung, Step(0));
  }
  EXPECT_EQ(sweep.NextMilestone({0, 0}), 6);
  EXPECT_EQ(sweep.Report({1, 2}, 0.7).verdict().reason.rank, 1);
}

TEST(Pbt, ALateReportCountsOnce) {
  SchedulerHarness sweep(Population());
  Begin(sweep);
  EXPECT_EQ(sweep.Report({0, 7}, 0.5).verdict().reason.rung, Step(6));
  EXPECT_EQ(sweep.NextMilestone({0, 7}), 8);
  EXPECT_EQ(sweep.NextMilestone({0, 18}), 0);  // max is next
}

// Whom luck sends back again and again ends nevertheless.
TEST(Pbt, ATrialThatHasTrainedForMaxStepsNeverClones) {
  SchedulerHarness sweep(Population());
  Begin(sweep);
  sweep.Report({0, 2}, 0.9).Save({0, 2});
  for (int decision = 1; decision < 10; ++decision) {
    sweep.Report({1, 4}, 0.1);
    EXPECT_EQ(sweep.verdict().kind, VerdictKind::kExploit) << decision;
  }
  EXPECT_THAT(sweep.Report({1, 4}, 0.1).verdict(), Continues());
}

TEST(Pbt, TrialsTakeTurnsWhenOthersWaitForASlot) {
  SchedulerHarness sweep(Population());
  sweep.Create(0).Create(1);  // two slots, four members
  EXPECT_THAT(sweep.Report({0, 2}, 0.5).verdict(), Pauses());
  EXPECT_EQ(sweep.verdict().reason.rank, 1);
  EXPECT_TRUE(std::holds_alternative<StartNew>(sweep.Next()));
  sweep.Create(2);
  EXPECT_THAT(sweep.Report({1, 2}, 0.6).verdict(), Pauses());
  EXPECT_TRUE(std::holds_alternative<StartNew>(sweep.Next()));
  sweep.Create(3);
  EXPECT_THAT(sweep.Report({2, 2}, 0.7).verdict(), Pauses());
  EXPECT_THAT(sweep.Promoted(), Optional(0u));
  EXPECT_THAT(sweep.Report({3, 2}, 0.8).verdict(), Pauses());
  EXPECT_THAT(sweep.Promoted(), Optional(1u));
  EXPECT_THAT(sweep.Report({0, 4}, 0.75).verdict(), Pauses());
  EXPECT_THAT(sweep.Promoted(), Optional(2u));  // trial 0 has come further
  EXPECT_THAT(sweep.promotion().text, HasSubstr("fewest decisions"));
  EXPECT_THAT(sweep.Promoted(), Optional(3u));
  EXPECT_THAT(sweep.Promoted(), Optional(0u));
  EXPECT_THAT(sweep.Report({1, 4}, 0.8).verdict(), Continues());  // nobody waits
}

TEST(Pbt, DoesNotWaitForTrialsThatCannotCome) {
  Pbt::Options options = Four();
  options.max_trials = 2;
  SchedulerHarness sweep(Population(options));
  sweep.Create(0).Create(1);
  EXPECT_THAT(sweep.Report({0, 2}, 0.5).verdict(), Continues());

  SchedulerHarness exhausted(Population());
  exhausted.Create(0).Exhaust();
  EXPECT_THAT(exhausted.Report({0, 2}, 0.5).verdict(), Continues());
}

TEST(Pbt, ReplacesFailedButNotCompletedTrials) {
  SchedulerHarness sweep(Population());
  Begin(sweep);
  EXPECT_TRUE(std::holds_alternative<Wait>(sweep.Next(true, 4)));
  sweep.End(0, TrialState::kFailed);
  EXPECT_TRUE(std::holds_alternative<StartNew>(sweep.Next(true, 3)));
  sweep.Create(4);
  for (uint32_t trial = 1; trial < 5; ++trial) sweep.End(trial, TrialState::kCompleted);
  const NextMove done = sweep.Next(true);
  ASSERT_TRUE(std::holds_alternative<Done>(done));
  testing::ExpectGolden("schedulers/pbt_done", std::get<Done>(done).text + "\n");
}

// What is drawn depends on nothing but the seed, the trial and its count of decisions.
TEST(Pbt, DrawsTheSameDonorAndConfigurationEachTime) {
  Pbt::Options options = Four();
  options.population = 8;
  options.fraction = 0.5;
  options.exploration = {};
  const auto play = [&](bool restore) {
    SchedulerHarness sweep(Population(options));
    Begin(sweep, 8);
    for (const uint32_t trial : {6, 5, 4, 3, 2, 1, 0})  // each better than those before
      sweep.Report({trial, 2}, 0.9 - 0.1 * trial).Save({trial, 2});
    if (restore) sweep.Restore(Population(options));
    return sweep.Report({7, 2}, 0.0).verdict();
  };
  const Verdict verdict = play(false);
  ASSERT_EQ(verdict.kind, VerdictKind::kExploit);
  EXPECT_LT(verdict.donor.trial.number.value, 4u);
  EXPECT_NE(verdict.config, (Config{{"lr", verdict.donor.trial.number.value + 1.0}}));
  const Verdict again = play(true);
  EXPECT_EQ(again.donor, verdict.donor);
  EXPECT_EQ(again.config, verdict.config);
}

TEST(Pbt, AnyOfTheBestMayBeTheDonor) {
  Pbt::Options options = Four();
  options.population = 8;
  options.fraction = 0.5;
  std::set<uint32_t> donors;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SchedulerHarness sweep(Pbt(Maximise("accuracy"), Space(), seed, options));
    Begin(sweep, 8);
    for (const uint32_t trial : {6, 5, 4, 3, 2, 1, 0})  // each better than those before
      sweep.Report({trial, 2}, 0.9 - 0.1 * trial).Save({trial, 2});
    donors.insert(sweep.Report({7, 2}, 0.0).verdict().donor.trial.number.value);
  }
  EXPECT_EQ(donors, (std::set<uint32_t>{0, 1, 2, 3}));
}

TEST(Pbt, IsTheSameAfterASnapshot) {
  SchedulerHarness sweep(Population());
  Begin(sweep);
  sweep.Report({0, 2}, 0.9).Save({0, 2}).Report({1, 2}, 0.5).Report({2, 2}, 0.6);
  sweep.Restore(Population());
  EXPECT_THAT(sweep.Report({3, 2}, 0.1).verdict(), Clones(Checkpoint(0, 1, 2), 1.0));
}

SweepSpec Spec(int64_t interval, int64_t max, int64_t population, int max_trials,
               const std::string& explore = "") {
  return {.objectives = {Maximise("accuracy")},
          .space = Space(),
          .scheduler = {.name = "pbt",
                        .options = {{"perturbation_interval", interval},
                                    {"quantile_fraction", 0.25},
                                    {"resample_probability", 0.25},
                                    {"smaller_factor", 0.8},
                                    {"larger_factor", 1.2},
                                    {"population", population},
                                    {"explore", explore},
                                    {"synchronous", false}}},
          .max_step = Step(max),
          .stop = {.max_trials = max_trials}};
}

TEST(Pbt, NamesTheInvalidKey) {
  const auto error = [](const SweepSpec& spec) { return PbtEntry().make(spec).error().message; };
  EXPECT_THAT(error(Spec(1, 0, 4, 0)), StartsWith("scheduler.max: "));
  EXPECT_THAT(error(Spec(9, 9, 4, 0)), StartsWith("scheduler.perturbation_interval: 9 "));
  EXPECT_THAT(error(Spec(1, 9, 0, 0)), StartsWith("scheduler.population: "));
  EXPECT_THAT(error(Spec(1, 9, 0, 4, "lr, width")),
              AllOf(StartsWith("scheduler.explore: "), HasSubstr("\"width\"")));
  EXPECT_TRUE(PbtEntry().make(Spec(1, 9, 0, 4, " lr,")).ok());
}

TEST(Pbt, AnEditAppliesToTheNextDecision) {
  SchedulerHarness sweep(Population());
  Begin(sweep);
  sweep.Report({0, 2}, 0.9);
  sweep.Adapt(Spec(5, 40, 2, 9));
  EXPECT_EQ(sweep.NextMilestone({0, 2}), 5);
  EXPECT_EQ(sweep.NextMilestone({1, 30}), 35);
}

}  // namespace
}  // namespace attune::schedulers
