#include "core/brain/growth.h"

#include <string>
#include <vector>

#include "core/state/snapshot.h"
#include "tests/support/mentions.h"
#include "tests/unit/core/brain_harness.h"

namespace attune {
namespace {

constexpr double kGrowAfter = 60;

// Hosts with GPUs, and gangs with min_workers.
class Growth : public BrainTest {
 protected:
  static SweepSpec ElasticSpec(int workers, int min_workers, int max_trials = 1) {
    SweepSpec spec = testing::ToySpec();
    spec.gang = {.workers = workers,
                 .min_workers = min_workers,
                 .grow_after = Seconds(kGrowAfter),
                 .per_worker = {.cpus = 0, .gpus = 1}};
    spec.stop.max_trials = max_trials;
    return spec;
  }
  std::vector<Event> JoinHost(const std::string& name, int gpus) {
    return JoinSpanning(name, {.gpus = gpus}, "shared");
  }
  // The executor of rank 0, which sends the messages of the gang.
  std::string FirstHostOf(uint32_t number) const {
    return trial(number).live->ranks.front().executor;
  }
  std::vector<Event> Report(uint32_t number, int64_t step, double score, bool waits = false) {
    return Tell(number,
                TrialReported{.report = {Step(step), {{"score", score}}, Seconds(0), waits}},
                FirstHostOf(number));
  }
  std::vector<Event> Save(uint32_t number, int64_t step) {
    return Tell(number, CheckpointSaved{.checkpoint = {Step(step), Path(number, step), "sha256:"}},
                FirstHostOf(number));
  }
  size_t WorkersOf(uint32_t number) const { return trial(number).live->ranks.size(); }
  bool IsGrowing(uint32_t number) const {
    return trial(number).yield_verdict && trial(number).yield_verdict->kind == VerdictKind::kResize;
  }
  std::string GrowthReasonOf(uint32_t number) const {
    return trial(number).yield_verdict->reason.text;
  }
  // A trial with two of eight workers and a checkpoint of step 1, old enough to grow.
  void StartSmall() {
    JoinHost("a", 2);
    Create(ElasticSpec(8, 2));
    Report(0, 1, 0.5);
    Save(0, 1);
    Wait(kGrowAfter);
  }
};

TEST_F(Growth, AGangRestartsWithMoreWorkersWhenSlotsAreFree) {
  StartSmall();
  EXPECT_FALSE(IsGrowing(0)) << "no slot is free";
  const auto events = JoinHost("b", 4);
  ASSERT_NE(Find<TrialYielding>(events), nullptr);
  EXPECT_THAT(Find<TrialYielding>(events)->verdict.reason.text, testing::Mentions("2 of 8", "6"));

  const auto decided = Report(0, 2, 0.6, /*waits=*/true);
  ASSERT_NE(Find<TrialDecided>(decided), nullptr);
  EXPECT_EQ(Find<TrialDecided>(decided)->verdict.kind, VerdictKind::kResize);
  EXPECT_THAT(Find<TrialDecided>(decided)->verdict.reason.text, testing::Mentions("2 of 8", "6"));
  EXPECT_EQ(StateOf(0), TrialState::kRunning) << "a trial that grows needs no promotion";
  Save(0, 2);
  const auto ended = Finish(0);
  EXPECT_EQ(Find<AttemptEnded>(ended)->outcome, Outcome::kPaused);
  EXPECT_NE(Find<TrialRequeued>(ended)->reason, "");
  EXPECT_EQ(WorkersOf(0), 6u);
  EXPECT_EQ(trial(0).live->resume->step, Step(2));
  EXPECT_EQ(trial(0).failures, 0);
  EXPECT_FALSE(IsGrowing(0));
}

TEST_F(Growth, AGangRestartsWithFewerWorkersAfterALoss) {
  JoinHost("a", 2);
  JoinHost("b", 2);
  Create(ElasticSpec(4, 2));
  ASSERT_EQ(WorkersOf(0), 4u);
  Report(0, 1, 0.5);
  Save(0, 1);
  Lose("b");
  ASSERT_NE(trial(0).live, std::nullopt);
  Tell(0, AttemptEnded{.outcome = Outcome::kKilled}, "a");
  EXPECT_EQ(WorkersOf(0), 2u);
  EXPECT_EQ(trial(0).live->resume->step, Step(1));
  EXPECT_EQ(trial(0).failures, 0);
}

TEST_F(Growth, DoesNotHappenBeforeTheAttemptIsOldEnough) {
  JoinHost("a", 2);
  Create(ElasticSpec(8, 2));
  Report(0, 1, 0.5);
  Save(0, 1);
  JoinHost("b", 4);
  EXPECT_FALSE(IsGrowing(0));
  const auto due = brain.Due(Time{now});
  ASSERT_TRUE(due);
  EXPECT_EQ(*due, (Time{trial(0).live->assigned_at.us + static_cast<int64_t>(kGrowAfter * 1e6)}));
  Wait(kGrowAfter / 2);
  EXPECT_FALSE(IsGrowing(0));
  Wait(kGrowAfter / 2);
  EXPECT_TRUE(IsGrowing(0));
}

TEST_F(Growth, DoesNotHappenBeforeTheFirstCheckpoint) {
  JoinHost("a", 2);
  JoinHost("b", 4);
  Lose("b");
  Create(ElasticSpec(8, 2));
  Report(0, 1, 0.5);
  Save(0, 1);
  Fail(0);
  Wait(100);  // longer than the backoff
  ASSERT_EQ(trial(0).attempts, 2u);
  JoinHost("b", 4);
  Wait(kGrowAfter);
  Report(0, 2, 0.6);
  EXPECT_FALSE(IsGrowing(0)) << "the checkpoint is from the previous attempt";
  Save(0, 2);
  EXPECT_TRUE(IsGrowing(0));
}

TEST_F(Growth, AFullOrInelasticGangDoesNotGrow) {
  JoinHost("a", 2);
  Create(ElasticSpec(2, 1));
  Report(0, 1, 0.5);
  Save(0, 1);
  Wait(kGrowAfter);
  JoinHost("b", 4);
  EXPECT_FALSE(IsGrowing(0));
  EXPECT_TRUE(sweep().small.empty());
}

TEST_F(Growth, AGangLeavesFreeSlotsToAWaitingTrial) {
  StartSmall();
  Do(EnqueueTrial{id(), {{"x", int64_t{7}}}, ""});
  ASSERT_EQ(StateOf(1), TrialState::kPending);
  const auto events = JoinHost("b", 1);
  EXPECT_EQ(Find<TrialYielding>(events), nullptr) << "the waiting trial would take the slots";
  Do(KillTrial{Id(1)});
  EXPECT_TRUE(IsGrowing(0));
}

TEST_F(Growth, AGangLeavesFreeSlotsToATrialInBackoff) {
  JoinHost("a", 2);
  JoinHost("b", 6);
  Lose("b");
  Create(ElasticSpec(8, 2, 2));
  JoinHost("c", 2);
  ASSERT_EQ(WorkersOf(1), 2u);
  Report(0, 1, 0.5);
  Save(0, 1);
  Wait(kGrowAfter);
  Fail(1);
  EXPECT_FALSE(IsGrowing(0));
  Wait(100);
  EXPECT_EQ(WorkersOf(1), 2u);
}

TEST_F(Growth, AGangDoesNotGrowOntoAnExecutorThatEndsTooSoon) {
  for (const double left : {30, 3600}) {
    JoinHost("a", 2);
    Create(ElasticSpec(8, 2));
    Report(0, 1, 0.5);
    Save(0, 1);
    Do(JoinExecutor{.name = "b",
                    .instance = std::to_string(left),
                    .resources = {.gpus = 4},
                    .spans = true,
                    .folder = "shared",
                    .time_left = Seconds(kGrowAfter + left)});
    Wait(kGrowAfter);
    EXPECT_EQ(IsGrowing(0), left == 3600);
    Do(KillSweep{id()});
    Finish(0);
    Lose("b");
  }
}

TEST_F(Growth, FasterReportsLetAGangGrowOntoAnExecutorThatEndsSoon) {
  const auto report = [this](int64_t step) {
    Tell(0, TrialReported{.report = {Step(step), {{"score", 0.6}}, Seconds(40)}}, FirstHostOf(0));
  };
  JoinHost("a", 2);
  Create(ElasticSpec(8, 2));
  report(1);
  Save(0, 1);
  Do(JoinExecutor{.name = "b",
                  .instance = "b",
                  .resources = {.gpus = 4},
                  .spans = true,
                  .folder = "shared",
                  .time_left = Seconds(kGrowAfter + 110)});
  Wait(kGrowAfter);
  ASSERT_FALSE(IsGrowing(0)) << "110 s are left, and a report with a checkpoint needs 124";
  for (int64_t step = 2; step <= 4; ++step) report(step);
  EXPECT_TRUE(IsGrowing(0)) << "a report with a checkpoint needs 92 s";
}

TEST_F(Growth, ATrialTooLargeForEveryExecutorDoesNotPreventGrowth) {
  StartSmall();
  const SweepId small = id();
  SweepSpec giant = testing::ToySpec();
  giant.gang = {.workers = 64, .per_worker = {.cpus = 0, .gpus = 1}};
  Create(giant);
  JoinHost("b", 4);
  EXPECT_TRUE(sweep(small).Find(TrialNumber(0))->yield_verdict);
}

TEST_F(Growth, ATrialOfLowerPriorityDoesNotPreventGrowth) {
  StartSmall();
  const SweepId small = id();
  SweepSpec large = ElasticSpec(7, 7);
  large.priority = -1;
  Create(large);
  JoinHost("b", 5);
  EXPECT_TRUE(sweep(small).Find(TrialNumber(0))->yield_verdict);
}

TEST_F(Growth, OneGangGrowsAtATime) {
  JoinHost("a", 1);
  Create(ElasticSpec(2, 1, 2));
  JoinHost("b", 1);
  for (const uint32_t number : {0u, 1u}) {
    Report(number, 1, 0.5);
    Save(number, 1);
  }
  Wait(kGrowAfter);
  JoinHost("c", 2);
  EXPECT_TRUE(IsGrowing(0));
  EXPECT_FALSE(IsGrowing(1));
  Report(0, 2, 0.6, true);
  EXPECT_FALSE(IsGrowing(1)) << "trial 0 has not left yet";
  Finish(0);
  EXPECT_EQ(WorkersOf(0), 2u);
  EXPECT_TRUE(IsGrowing(1));
  Report(1, 2, 0.6, true);
  Finish(1);
  EXPECT_EQ(WorkersOf(1), 2u);
}

TEST_F(Growth, TheBestTrialGrowsFirstIfTheSweepAsksForIt) {
  JoinHost("a", 6);
  SweepSpec spec = ElasticSpec(6, 2, 3);
  spec.gang.grow = GrowthPolicy::kBest;
  Create(spec);
  for (uint32_t number = 0; number < 3; ++number) {
    ASSERT_EQ(WorkersOf(number), 2u) << "each trial starts with an even share";
    Report(number, 1, number == 1 ? 0.9 : 0.5);
    Save(number, 1);
  }
  Wait(kGrowAfter);
  JoinHost("b", 4);
  EXPECT_FALSE(IsGrowing(0));
  EXPECT_FALSE(IsGrowing(2));
  ASSERT_TRUE(IsGrowing(1));
  EXPECT_THAT(GrowthReasonOf(1), testing::Mentions("2 of 6", "6", "best"));
  Report(1, 2, 0.9, /*waits=*/true);
  Save(1, 2);
  Finish(1);
  EXPECT_EQ(WorkersOf(1), 6u);
  EXPECT_EQ(WorkersOf(0) + WorkersOf(2), 4u);
}

TEST_F(Growth, ATrialStartsWithAnEvenShareAndGrowsToIt) {
  JoinHost("a", 8);
  SweepSpec spec = ElasticSpec(8, 2, 3);
  spec.gang.grow = GrowthPolicy::kEven;
  Create(spec);
  EXPECT_EQ(WorkersOf(0), 3u);
  EXPECT_EQ(WorkersOf(1), 3u);
  ASSERT_EQ(WorkersOf(2), 2u);
  for (uint32_t number = 0; number < 3; ++number) {
    Report(number, 1, 0.5);
    Save(number, 1);
  }
  Wait(kGrowAfter);
  EXPECT_FALSE(IsGrowing(0));
  EXPECT_FALSE(IsGrowing(2)) << "no slot is free";
  Finish(0);  // the program ends without being asked: 8 slots are free for two trials
  ASSERT_TRUE(IsGrowing(2)) << "the smallest gang grows first";
  EXPECT_THAT(GrowthReasonOf(2), testing::Mentions("2 of 8", "4"));
  Report(2, 2, 0.6, /*waits=*/true);
  Save(2, 2);
  Finish(2);
  EXPECT_EQ(WorkersOf(2), 4u);
  ASSERT_TRUE(IsGrowing(1));
  EXPECT_THAT(GrowthReasonOf(1), testing::Mentions("3 of 8", "4"));
}

TEST_F(Growth, AnEvenShareCountsTheTrialsThatMayRunTogether) {
  JoinHost("a", 8);
  SweepSpec spec = ElasticSpec(8, 2, 100);
  spec.gang.grow = GrowthPolicy::kEven;
  spec.max_concurrent_trials = 2;
  Create(spec);
  EXPECT_EQ(WorkersOf(0), 4u);
  EXPECT_EQ(WorkersOf(1), 4u);
}

TEST_F(Growth, IsCancelledIfTheFreeSlotsAreTaken) {
  StartSmall();
  JoinHost("b", 4);
  ASSERT_TRUE(IsGrowing(0));
  const auto events = Lose("b");
  ASSERT_NE(Find<TrialYielding>(events), nullptr);
  EXPECT_EQ(Find<TrialYielding>(events)->verdict.kind, VerdictKind::kContinue);
  EXPECT_THAT(Find<TrialYielding>(events)->verdict.reason.text, testing::Mentions("gone"));
  EXPECT_FALSE(trial(0).yield_verdict);
  const auto decided = Report(0, 2, 0.6, true);
  EXPECT_EQ(Find<TrialDecided>(decided)->verdict.kind, VerdictKind::kContinue);
}

TEST_F(Growth, IsCancelledIfAnotherGangWaits) {
  StartSmall();
  JoinHost("b", 4);
  ASSERT_TRUE(IsGrowing(0));
  const SweepId small = id();
  Create(ElasticSpec(6, 6));
  const Trial& grown = *sweep(small).Find(TrialNumber(0));
  EXPECT_FALSE(grown.yield_verdict);
}

TEST_F(Growth, IsNotCancelledByADisconnectedExecutor) {
  StartSmall();
  JoinHost("b", 4);
  ASSERT_TRUE(IsGrowing(0));
  reachable = [](const std::string& name) { return name != "b"; };
  Wait(1);
  EXPECT_TRUE(IsGrowing(0));
}

TEST_F(Growth, IsCancelledIfTheExecutorWithFreeSlotsIsDrained) {
  StartSmall();
  JoinHost("b", 4);
  ASSERT_TRUE(IsGrowing(0));
  Do(DrainExecutor{"b", ""});
  EXPECT_FALSE(IsGrowing(0)) << "the executor is drained";
  Do(ResumeExecutor{"b"});
  EXPECT_TRUE(IsGrowing(0));
}

// Regression: the gang stayed small until the next event.
TEST_F(Growth, AGangGrowsOntoAnExecutorThatIsNoLongerExcluded) {
  JoinHost("b", 2);
  SweepSpec spec = ElasticSpec(8, 2);
  spec.failure.backoff = Seconds(0);
  spec.failure.on_log = {{"ECC", LogAction::kExcludeHost}};
  Create(spec);
  ASSERT_EQ(FirstHostOf(0), "b");
  AttemptEnded end{.outcome = Outcome::kFailed};
  end.failure = {.kind = FailureKind::kExit, .exit_code = 1, .pattern = "ECC", .line = "ECC"};
  Tell(0, end);
  JoinHost("a", 2);
  ASSERT_EQ(FirstHostOf(0), "a");
  Report(0, 1, 0.5);
  Save(0, 1);
  Wait(kGrowAfter);
  EXPECT_FALSE(IsGrowing(0));
  Do(ResumeExecutor{"b"});
  EXPECT_TRUE(IsGrowing(0));
}

TEST_F(Growth, AGangLeavesADrainedExecutorEvenIfTheFreeSlotsAreTaken) {
  StartSmall();
  JoinHost("b", 4);
  ASSERT_TRUE(IsGrowing(0));
  Do(DrainExecutor{"a", "", /*now=*/true});
  EXPECT_EQ(trial(0).yield_verdict->reason.rule, kExecutorDrained);
  Report(0, 2, 0.6, /*waits=*/true);
  Save(0, 2);
  Finish(0);
  EXPECT_EQ(FirstHostOf(0), "b");
  EXPECT_EQ(WorkersOf(0), 4u);
}

TEST_F(Growth, APauseOfTheSweepHasPrecedence) {
  StartSmall();
  JoinHost("b", 4);
  Do(PauseSweep{id()});
  EXPECT_EQ(trial(0).yield_verdict->reason.rule, kSweepPaused);
  Report(0, 2, 0.6, true);
  Save(0, 2);
  Finish(0);
  EXPECT_EQ(StateOf(0), TrialState::kPaused);
  Do(ResumeSweep{id()});
  EXPECT_EQ(WorkersOf(0), 6u) << "the resumed trial uses all free slots";
}

TEST_F(Growth, ATrialPausedWhileItLeavesWaitsForItsSweep) {
  StartSmall();
  JoinHost("b", 4);
  Report(0, 2, 0.6, true);
  Do(PauseSweep{id()});
  Finish(0);
  EXPECT_FALSE(trial(0).live);
  Do(ResumeSweep{id()});
  EXPECT_EQ(WorkersOf(0), 6u);
}

TEST_F(Growth, TrialsOfAStoppedSweepFinishWithoutGrowth) {
  StartSmall();
  JoinHost("b", 4);
  ASSERT_TRUE(IsGrowing(0));
  Do(StopSweep{id()});
  EXPECT_FALSE(trial(0).yield_verdict) << "a trial of a stopping sweep would not start again";
  Report(0, 2, 0.6, true);
  EXPECT_EQ(StateOf(0), TrialState::kRunning);
}

TEST_F(Growth, ALossWhileAGangLeavesIsNotCharged) {
  StartSmall();
  JoinHost("b", 4);
  Report(0, 2, 0.6, true);
  Save(0, 2);
  Lose("a");
  EXPECT_EQ(WorkersOf(0), 4u);
  EXPECT_EQ(trial(0).live->resume->step, Step(2));
  EXPECT_EQ(trial(0).failures, 0);
}

TEST_F(Growth, ALoadedStateGrowsLikeTheOriginal) {
  StartSmall();
  Brain loaded(algorithms, [](const std::string&) { return true; });
  ASSERT_TRUE(loaded.Load(SaveState(brain.state())).ok());
  EXPECT_EQ(loaded.state().Find(id())->small, sweep().small);
  EXPECT_EQ(SaveState(loaded.state()), SaveState(brain.state()));
}

TEST_F(Growth, AGangGrowsEvenIfItsCheckpointMustBeFetched) {
  JoinWithFolder("a", {.gpus = 4}, "of a");
  Create(ElasticSpec(2, 2));
  Create(ElasticSpec(4, 2));
  Report(0, 1, 0.5);
  Save(0, 1);
  Wait(kGrowAfter);
  JoinWithFolder("b", {.gpus = 8}, "of b");
  EXPECT_TRUE(IsGrowing(0));
  EXPECT_THAT(GrowthReasonOf(0), testing::Mentions("2 of 4", "4"));
}

}  // namespace
}  // namespace attune
