#include "base/result.h"
#include "tests/support/mentions.h"
#include "tests/unit/core/brain_harness.h"

namespace attune {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(BrainTest, StartsAsManyGangsAsFit) {
  Create(testing::ToySpec());
  EXPECT_EQ(sweep().created, 2);
  EXPECT_EQ(sweep().Count(TrialState::kRunning), 2);
  EXPECT_EQ(brain.Waiting(sweep()), "");
}

TEST_F(BrainTest, AWaitingSweepNamesTheMissingResource) {
  Create(testing::ToySpec());
  Create(testing::ToySpec());
  EXPECT_THAT(brain.Waiting(sweep()), testing::Mentions("1 CPU", "box", "0"));
}

TEST_F(BrainTest, NothingIsPlacedOnAnUnreachableExecutor) {
  connected = false;
  Create(testing::ToySpec());
  EXPECT_EQ(sweep().created, 0);
  EXPECT_NE(brain.Waiting(sweep()), "");
}

TEST_F(BrainTest, ConcurrencyIsLimitedByTheSweep) {
  SweepSpec spec = testing::ToySpec();
  spec.max_concurrent_trials = 1;
  Create(spec);
  EXPECT_EQ(sweep().created, 1);
}

TEST_F(BrainTest, AFreeSlotGoesToTheSweepWithTheFewestGangs) {
  const SweepId first = Create(testing::ToySpec());
  const SweepId second = Create(testing::ToySpec());
  EXPECT_EQ(brain.state().Find(first)->live.size(), 2u);
  const Attempt live = *sweep(first).Find(TrialNumber(0))->live;
  Do(RecordFact{live.epoch, AttemptEnded{live.id, Outcome::kFinished, {}}});
  EXPECT_EQ(brain.state().Find(first)->live.size(), 1u);
  EXPECT_EQ(brain.state().Find(second)->live.size(), 1u);
}

TEST_F(BrainTest, InitialPointsComeFirst) {
  SweepSpec spec = testing::ToySpec();
  spec.initial_points = {Config{{"x", int64_t{77}}}};
  Create(spec);
  EXPECT_EQ(trial(0).config, (Config{{"x", int64_t{77}}}));
  EXPECT_EQ(trial(1).config, (Config{{"x", int64_t{0}}}));
}

TEST_F(BrainTest, AReportBeforeTheMilestoneIsNotJudged) {
  Create(testing::ToySpec());
  EXPECT_EQ(Find<TrialDecided>(Report(0, 1, 0.1)), nullptr);
  EXPECT_EQ(trial(0).milestone, Step(2));
}

TEST_F(BrainTest, AReportAtAMilestoneIsJudgedAndSetsTheNextOne) {
  Create(testing::ToySpec());
  const auto events = Report(0, 2, 0.9);
  ASSERT_NE(Find<TrialDecided>(events), nullptr);
  EXPECT_EQ(Find<TrialDecided>(events)->milestone, Step(4));
  EXPECT_EQ(trial(0).live->verdict_step, Step(2));
}

TEST_F(BrainTest, AStoppedTrialHoldsItsSlotsUntilItsGangHasLeft) {
  Create(testing::ToySpec());
  Report(0, 2, 0.1);
  EXPECT_EQ(StateOf(0), TrialState::kStopped);
  EXPECT_TRUE(ShouldRun(trial(0)));
  EXPECT_EQ(sweep().created, 2);
  const auto events = Finish(0);
  EXPECT_EQ(Find<AttemptEnded>(events)->outcome, Outcome::kStopped);
  EXPECT_EQ(sweep().created, 3);
}

TEST_F(BrainTest, TheLastStepCompletesATrialWithoutAskingTheScheduler) {
  Create(testing::ToySpec());
  const auto events = Report(0, 6, 0.1);
  EXPECT_EQ(Find<TrialEnded>(events)->state, TrialState::kCompleted);
  EXPECT_EQ(Find<TrialDecided>(events)->verdict.reason.rule, "max_step");
  EXPECT_EQ(Find<AttemptEnded>(Finish(0))->outcome, Outcome::kFinished);
}

TEST_F(BrainTest, ATrialThatEndsWithoutAReportQuotesItsExecutor) {
  Create(testing::ToySpec());
  const auto events = Tell(
      0, AttemptEnded{.outcome = Outcome::kFinished, .failure = {.message = "its observation"}});
  EXPECT_EQ(Find<AttemptEnded>(events)->failure, Failure()) << "the attempt has not failed";
  EXPECT_THAT(Find<TrialEnded>(events)->reason, EndsWith(": its observation"));
  Report(1, 1, 0.9);
  const auto others = Tell(
      1, AttemptEnded{.outcome = Outcome::kFinished, .failure = {.message = "its observation"}});
  EXPECT_THAT(Find<TrialEnded>(others)->reason, Not(HasSubstr("its observation")));
}

TEST_F(BrainTest, ARepeatedReportCountsOnce) {
  Create(testing::ToySpec());
  Report(0, 1, 0.9);
  EXPECT_THAT(Report(0, 1, 0.2), IsEmpty());
}

TEST_F(BrainTest, ARepeatedStartOrFirstStepCountsOnce) {
  Create(testing::ToySpec());
  Tell(0, AttemptStarted{.pids = {7}});
  EXPECT_THAT(Tell(0, AttemptStarted{.pids = {7}}), IsEmpty());
  Tell(0, AttemptFirstStep{});
  EXPECT_THAT(Tell(0, AttemptFirstStep{}), IsEmpty());
}

TEST_F(BrainTest, AStartKeepsAtMostOneProcessPerRank) {
  Create(testing::ToySpec());
  const auto events = Tell(0, AttemptStarted{.pids = std::vector<int64_t>(1000, 7)});
  EXPECT_EQ(Find<AttemptStarted>(events)->pids.size(), trial(0).live->ranks.size());
}

TEST_F(BrainTest, LoggedMetricsAreRecordedOnceAndDecideNothing) {
  Create(testing::ToySpec());
  Report(0, 2, 0.9);
  const Trial before = trial(0);
  // The logged metric has the name of the objective, and its step is beyond the next milestone.
  const MetricsLogged logged{.number = 1, .step = 5.5, .metrics = {{"score", 1e9}}};
  EXPECT_THAT(Tell(0, logged), SizeIs(1));
  EXPECT_THAT(Tell(0, logged), IsEmpty()) << "the executor repeats it";
  EXPECT_THAT(Tell(0, MetricsLogged{.number = 2, .step = 1}), SizeIs(1));
  EXPECT_EQ(trial(0).last_step, before.last_step);
  EXPECT_EQ(trial(0).milestone, before.milestone);
  EXPECT_EQ(trial(0).best, before.best);
  Fail(0);
  EXPECT_THAT(Tell(0, logged), SizeIs(1)) << "each attempt numbers its logs from 1";
}

TEST_F(BrainTest, AFactOfASupersededEpochChangesNothing) {
  Create(testing::ToySpec());
  const Attempt old = *trial(0).live;
  Fail(0);
  ASSERT_TRUE(trial(0).live);
  EXPECT_THAT(Do(RecordFact{old.epoch, TrialReported{old.id, {Step(1), {{"score", 1.0}}}}}),
              IsEmpty());
  EXPECT_EQ(trial(0).last_step, Step(0));
}

TEST_F(BrainTest, AFailedAttemptIsRetriedFromTheNewestCheckpoint) {
  Create(testing::ToySpec());
  Tell(0, CheckpointSaved{.checkpoint = {Step(2), "/c/2", "sha256:2"}, .bytes = 10});
  Report(0, 2, 0.9);
  Report(0, 3, 0.9);
  const auto events = Fail(0);
  EXPECT_THAT(Find<TrialRequeued>(events)->reason,
              testing::Mentions("attempt 1: it broke", "1 of 3", "step 2"));
  const AttemptAssigned* again = Find<AttemptAssigned>(events);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->resume->path, "/c/2");
  EXPECT_EQ(again->attempt.number, 2u);
  EXPECT_EQ(again->milestone, Step(4));
}

TEST_F(BrainTest, StepsRepeatedAfterARetryAreNotJudgedAgain) {
  Create(testing::ToySpec());
  Report(0, 2, 0.9);
  Report(0, 3, 0.9);
  Fail(0);
  EXPECT_THAT(Report(0, 2, 0.1), IsEmpty());
  EXPECT_EQ(trial(0).state, TrialState::kRunning);
}

TEST_F(BrainTest, RestartsAreBounded) {
  SweepSpec spec = testing::ToySpec();
  spec.failure.max_restarts = 1;
  Create(spec);
  Report(0, 1, 0.9);
  Fail(0);
  EXPECT_EQ(trial(0).state, TrialState::kRunning);
  Fail(0);
  EXPECT_EQ(StateOf(0), TrialState::kFailed);
}

TEST_F(BrainTest, AProgramThatCannotBeStartedFailsTheSweepAtOnce) {
  Create(testing::ToySpec());
  Fail(0, FailureKind::kStart);
  EXPECT_EQ(sweep().stopping_as, SweepState::kFailed);
  EXPECT_EQ(StateOf(1), TrialState::kKilled);
  EXPECT_FALSE(ShouldRun(trial(1)));
  Tell(1, AttemptEnded{.outcome = Outcome::kKilled});
  EXPECT_EQ(StateOf(id()), SweepState::kFailed);
  EXPECT_THAT(DescribeEnding().reason, HasSubstr("trial 0: attempt 1: it broke"));
}

TEST_F(BrainTest, ThreeFailedTrialsBeforeAnyReportFailTheSweep) {
  SweepSpec spec = testing::ToySpec();
  spec.failure.max_restarts = 0;
  spec.max_concurrent_trials = 1;
  Create(spec);
  Fail(0);
  Fail(1);
  EXPECT_EQ(sweep().state, SweepState::kRunning);
  Fail(2);
  EXPECT_EQ(StateOf(id()), SweepState::kFailed);
}

TEST_F(BrainTest, ThreeFailedAttemptsOfSeveralTrialsBeforeAnyReportFailTheSweep) {
  Create(testing::ToySpec());
  Fail(0);
  Fail(1);
  EXPECT_EQ(StateOf(0), TrialState::kRunning);
  Fail(0);
  EXPECT_EQ(StateOf(0), TrialState::kFailed);
  EXPECT_EQ(sweep().stopping_as, SweepState::kFailed);
  EXPECT_THAT(sweep().reason, testing::Mentions("3 attempts", "trial 0: attempt 2: it broke"));
  // Reopening a trial resets the count of failed attempts.
  Tell(1, AttemptEnded{.outcome = Outcome::kKilled});
  ASSERT_EQ(StateOf(id()), SweepState::kFailed);
  Do(ReopenTrial{RecordOf(0, Step(0))});
  EXPECT_FALSE(sweep().stopping_as);
  EXPECT_EQ(sweep().reason, "");
  Fail(0);
  EXPECT_EQ(StateOf(0), TrialState::kRunning);
}

TEST_F(BrainTest, FailuresDoNotFailTheSweepWhileAnotherTrialLivesLonger) {
  Create(testing::ToySpec());
  for (int i = 0; i < testing::ToySpec().failure.max_restarts; ++i) Fail(0);
  EXPECT_EQ(StateOf(0), TrialState::kRunning)
      << "trial 1 started earlier and may still load its data";
}

TEST_F(BrainTest, ATrialThatAloneFailsUsesAllItsRestarts) {
  SweepSpec spec = testing::ToySpec();
  spec.stop.max_trials = 1;
  Create(spec);
  for (int i = 0; i < spec.failure.max_restarts; ++i) Fail(0);
  EXPECT_EQ(StateOf(0), TrialState::kRunning);
}

TEST_F(BrainTest, FailuresDoNotFailTheSweepWhileAnotherTrialReports) {
  Create(testing::ToySpec());
  Fail(0);
  Fail(1);
  Tell(1, AttemptFirstStep{});
  Fail(0);
  EXPECT_EQ(StateOf(0), TrialState::kRunning);
}

TEST_F(BrainTest, FailuresOfAHostDoNotFailTheSweep) {
  SweepSpec spec = testing::ToySpec();
  spec.stop.max_trials = 2;
  Create(spec);
  Fail(0, FailureKind::kHost);
  Fail(1, FailureKind::kHost);
  Wait(60);
  Fail(0);
  EXPECT_EQ(StateOf(0), TrialState::kRunning);
  EXPECT_FALSE(sweep().stopping_as);
}

TEST_F(BrainTest, ATrialThatFillsADiskAgainIsChargedARestart) {
  SweepSpec spec = testing::ToySpec();
  spec.failure.max_restarts = 0;
  spec.stop.max_trials = 2;
  Create(spec);
  Report(0, 1, 0.9);
  Fail(0, FailureKind::kDisk);
  EXPECT_EQ(StateOf(0), TrialState::kPending);
  Wait(60);
  Fail(0, FailureKind::kDisk);
  EXPECT_EQ(StateOf(0), TrialState::kFailed);
}

TEST_F(BrainTest, GangsThatFillDisksDoNotQuarantineExecutors) {
  SweepSpec spec = testing::ToySpec();
  spec.failure.max_restarts = 100;
  spec.stop.max_trials = 2;
  Create(spec);
  Report(0, 1, 0.9);
  Join("den", {.cpus = 2});
  for (int i = 0; i < 8; ++i) {
    Fail(0, FailureKind::kDisk);
    Fail(1, FailureKind::kDisk);
    Wait(3600);
  }
  for (const auto& [name, executor] : brain.state().executors)
    EXPECT_FALSE(executor.quarantine.has_value()) << name;
}

TEST_F(BrainTest, FailuresOnOneOfTwoHostsDoNotFailTheSweep) {
  Create(testing::ToySpec());
  Join("den", {.cpus = 2});
  for (int i = 0; i < 2; ++i) {
    Fail(0);
    Fail(1);
  }
  EXPECT_EQ(StateOf(0), TrialState::kRunning);
  EXPECT_EQ(StateOf(1), TrialState::kRunning);
}

TEST_F(BrainTest, OneMoreFailedTrialThanAllowedFailsTheSweep) {
  SweepSpec spec = testing::ToySpec();
  spec.failure = {.max_restarts = 0, .max_failed_trials = 1};
  spec.max_concurrent_trials = 1;
  Create(spec);
  Report(0, 1, 0.9);
  Fail(0);
  EXPECT_EQ(sweep().state, SweepState::kRunning);
  Fail(1);
  EXPECT_THAT(DescribeEnding().reason, testing::Mentions("2 trials", "failure.max_failed_trials"));
}

TEST_F(BrainTest, AReportWithoutTheMetricFailsTheTrialAndListsItsMetrics) {
  Create(testing::ToySpec());
  Report(1, 1, 0.9);
  Tell(0, TrialReported{.report = {Step(1), {{"loss", 1.0}, {"acc", 0.1}}}});
  EXPECT_EQ(StateOf(0), TrialState::kFailed);
  EXPECT_FALSE(ShouldRun(trial(0)));
  EXPECT_THAT(Last<TrialEnded>([](const TrialEnded&) { return true; }).reason,
              testing::Mentions("step 1", "score", "acc, loss"));
  EXPECT_FALSE(sweep().stopping_as) << "other trials report the metric";
}

TEST_F(BrainTest, AFirstReportWithoutTheMetricFailsTheSweep) {
  Create(testing::ToySpec());
  Tell(0, TrialReported{.report = {Step(1), {{"loss", 1.0}}}});
  EXPECT_EQ(sweep().stopping_as, SweepState::kFailed);
  EXPECT_THAT(sweep().reason, testing::Mentions("trial 0: ", "step 1", "score", "loss"));
}

TEST_F(BrainTest, TheLossOfAnExecutorIsNotChargedAsARestart) {
  Create(testing::ToySpec());
  Report(0, 1, 0.9);
  const auto events = Do(JoinExecutor{"box", "b", "127.0.0.1", {.cpus = 2}});
  EXPECT_NE(Find<ExecutorLost>(events), nullptr);
  EXPECT_EQ(trial(0).failures, 0);
  EXPECT_EQ(trial(0).attempts, 2u);
  EXPECT_EQ(sweep().created, 2);
  EXPECT_EQ(brain.state().executors.at("box").host.cpus_free, 0);
}

TEST_F(BrainTest, AProcessThatJoinsAgainKeepsItsGangs) {
  Create(testing::ToySpec());
  EXPECT_THAT(Do(JoinExecutor{"box", "a", "127.0.0.1", {.cpus = 2}}), IsEmpty());
  EXPECT_EQ(trial(0).attempts, 1u);
}

TEST_F(BrainTest, ALateLossOfAnEarlierIncarnationIsIgnored) {
  const Incarnation old = brain.state().executors.at("box").incarnation;
  Do(JoinExecutor{"box", "b", "127.0.0.1", {.cpus = 2}});
  EXPECT_THAT(Do(LoseExecutor{"box", old, "late"}), IsEmpty());
}

TEST_F(BrainTest, APausedTrialIsPromotedBeforeANewOneStarts) {
  SweepSpec spec = testing::ToySpec();
  spec.max_concurrent_trials = 1;
  Create(spec);
  Tell(0, CheckpointSaved{.checkpoint = {Step(2), "/c/2", "sha256:2"}});
  Report(0, 2, 0.5);
  EXPECT_EQ(trial(0).state, TrialState::kPaused);
  const auto events = Finish(0);
  EXPECT_EQ(Find<AttemptEnded>(events)->outcome, Outcome::kPaused);
  EXPECT_EQ(sweep().created, 1);
  EXPECT_EQ(trial(0).state, TrialState::kRunning);
  EXPECT_EQ(trial(0).milestone, Step(4));
}

TEST_F(BrainTest, StopFinishesRunningTrialsAndStartsNone) {
  Create(testing::ToySpec());
  Do(StopSweep{id()});
  EXPECT_EQ(sweep().state, SweepState::kRunning);
  Report(0, 6, 1);
  Finish(0);
  EXPECT_EQ(sweep().created, 2);
  Report(1, 6, 1);
  Finish(1);
  EXPECT_EQ(StateOf(id()), SweepState::kStopped);
}

TEST_F(BrainTest, KillEndsEveryTrialAndWaitsForItsGang) {
  Create(testing::ToySpec());
  Do(KillSweep{id()});
  EXPECT_EQ(StateOf(0), TrialState::kKilled);
  EXPECT_THAT(TrialsToRunOn(brain.state(), "box"), IsEmpty());
  Tell(0, AttemptEnded{.outcome = Outcome::kKilled});
  Tell(1, AttemptEnded{.outcome = Outcome::kKilled});
  EXPECT_EQ(StateOf(id()), SweepState::kKilled);
  EXPECT_EQ(brain.state().executors.at("box").host.cpus_free, 2);
  const auto again = brain.Execute(KillSweep{id()}, Tick());
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, ErrorCode::kConflict);
}

TEST_F(BrainTest, ASweepEndsWhenItsSearcherIsExhausted) {
  SweepSpec spec = testing::ToySpec();
  spec.searcher.name = "three";
  spec.stop.max_trials = 0;
  Create(spec);
  Finish(0);
  Finish(1);
  Finish(2);
  EXPECT_EQ(StateOf(id()), SweepState::kCompleted);
}

TEST_F(BrainTest, ARepeatedIdempotencyKeyCreatesOneSweep) {
  Do(CreateSweep{testing::ToySpec(), "text", "key"});
  EXPECT_THAT(Do(CreateSweep{testing::ToySpec(), "text", "key"}), IsEmpty());
  EXPECT_EQ(brain.state().sweeps.size(), 1u);
}

TEST_F(BrainTest, AnUnknownSchedulerIsRefused) {
  SweepSpec spec = testing::ToySpec();
  spec.scheduler.name = "nope";
  EXPECT_FALSE(brain.Execute(CreateSweep{spec, "", ""}, Tick()).ok());
}

TEST_F(BrainTest, ReplayingTheLogGivesTheSameDecisions) {
  Create(testing::ToySpec());
  Report(0, 2, 0.9);
  Tell(0, CheckpointSaved{.checkpoint = {Step(2), "/c/2", "sha256:2"}});
  Fail(0);
  Report(1, 2, 0.1);

  Brain again(algorithms, [](const std::string&) { return true; });
  for (const Event& event : log) again.Replay(event);
  EXPECT_EQ(again.state().last_seq, brain.state().last_seq);

  const Attempt& live = *trial(1).live;
  const RecordFact finish{live.epoch, AttemptEnded{live.id, Outcome::kFinished, {}}};
  const auto expected = Do(finish);
  auto replayed = *again.Execute(finish, Tick());
  const auto following = again.Advance(Tick());
  replayed.insert(replayed.end(), following.begin(), following.end());
  ASSERT_EQ(replayed.size(), expected.size());
  EXPECT_EQ(Find<AttemptAssigned>(replayed)->epoch, Find<AttemptAssigned>(expected)->epoch);
  EXPECT_EQ(Find<TrialCreated>(replayed)->config, Find<TrialCreated>(expected)->config);
}

}  // namespace
}  // namespace attune
