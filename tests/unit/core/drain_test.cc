#include "core/brain/drain.h"
#include "base/result.h"

#include "core/state/origin.h"
#include "core/state/snapshot.h"
#include "tests/support/mentions.h"
#include "tests/unit/core/brain_harness.h"

namespace attune {
namespace {

using ::testing::IsEmpty;

// Gangs with two CPUs on "box" and "den". If both are free, "box" is used first.
class Drains : public BrainTest {
 protected:
  static SweepSpec Gangs(int max_trials = 1) {
    SweepSpec spec = testing::ToySpec();
    spec.gang = {.workers = 2, .per_worker = {.cpus = 1}};
    spec.stop.max_trials = max_trials;
    spec.failure.backoff = Seconds(0);
    return spec;
  }
  std::string HostOf(uint32_t number) const {
    const Trial* created = sweep().Find(TrialNumber(number));  // null before its first placement
    return created != nullptr && created->live ? created->live->ranks.front().executor : "";
  }
  // Rank 0 saves, sends a report that waits for its verdict, and leaves.
  void Yield(uint32_t number, int64_t step) {
    Save(number, step);
    Report(number, step, 0.9, /*waits=*/true);
    Finish(number);
  }
};

TEST_F(Drains, NewGangsDoNotStartAndRunningGangsFinish) {
  Create(Gangs(2));
  const auto events = Do(DrainExecutor{"box", "a new disk"});
  EXPECT_EQ(Find<ExecutorDrained>(events)->reason, "a new disk");
  EXPECT_EQ(Find<TrialYielding>(events), nullptr);
  Report(0, 1, 0.9);
  Finish(0);
  EXPECT_EQ(StateOf(0), TrialState::kCompleted);
  EXPECT_EQ(sweep().live.size(), 0u);
  EXPECT_THAT(brain.Waiting(sweep()), testing::Mentions("box", "drained"));
  Join("den", {.cpus = 2});
  EXPECT_EQ(HostOf(1), "den");
}

TEST_F(Drains, AResumedExecutorTakesGangsAgain) {
  Do(DrainExecutor{"box", ""});
  Create(Gangs());
  EXPECT_EQ(HostOf(0), "");
  EXPECT_NE(Find<ExecutorResumed>(Do(ResumeExecutor{"box"})), nullptr);
  EXPECT_EQ(HostOf(0), "box");
}

TEST_F(Drains, AnExecutorThatJoinsAgainIsStillDrained) {
  Do(DrainExecutor{"box", "hot"});
  Lose("box");
  Join("box", {.cpus = 2}, "another process");
  Create(Gangs());
  EXPECT_EQ(HostOf(0), "");
  EXPECT_EQ(brain.state().executors.at("box").drain->reason, "hot");
}

TEST_F(Drains, ADrainedExecutorIsNotForgotten) {
  Join("den", {.cpus = 2});
  Do(DrainExecutor{"box", ""});
  Lose("box");
  Lose("den");
  Wait(8 * 24 * 3600);
  EXPECT_TRUE(brain.state().executors.contains("box"));
  EXPECT_FALSE(brain.state().executors.contains("den"));
  Do(ResumeExecutor{"box"});
  Wait(1);
  EXPECT_FALSE(brain.state().executors.contains("box")) << "it was lost more than a week ago";
}

TEST_F(Drains, ASnapshotKeepsTheDrain) {
  Do(DrainExecutor{"box", "hot", true});
  State loaded(algorithms);
  ASSERT_TRUE(LoadState(SaveState(brain.state()), loaded).ok());
  EXPECT_TRUE(loaded.executors.at("box").drain->now);
  EXPECT_EQ(loaded.executors.at("box").drain->reason, "hot");
}

TEST_F(Drains, ADrainNowMovesGangsWithoutACharge) {
  Join("den", {.cpus = 2});
  Create(Gangs());
  ASSERT_EQ(HostOf(0), "box");
  const auto events = Do(DrainExecutor{"box", "", true});
  ASSERT_NE(Find<TrialYielding>(events), nullptr);
  EXPECT_EQ(Find<TrialYielding>(events)->verdict.reason.rule, kExecutorDrained);
  EXPECT_EQ(Find<TrialDecided>(Report(0, 1, 0.8)), nullptr) << "this report does not wait";
  Yield(0, 3);
  EXPECT_EQ(HostOf(0), "den");
  EXPECT_EQ(trial(0).live->resume->step, Step(3));
  EXPECT_EQ(trial(0).failures, 0);
  EXPECT_THAT(Last<TrialRequeued>([](const auto&) { return true; }).reason,
              testing::Mentions("box", "drained"));
}

TEST_F(Drains, GangsOfALeavingExecutorSaveAndLeave) {
  Create(Gangs());
  Do(LeaveExecutor{"box", Incarnation(99)});
  EXPECT_FALSE(trial(0).yield_verdict) << "an earlier process sent the message";
  Do(LeaveExecutor{"box", brain.state().executors.at("box").incarnation});
  ASSERT_TRUE(trial(0).yield_verdict) << "even without another free executor";
  EXPECT_THAT(trial(0).yield_verdict->reason.text, testing::Mentions("box"));
  reachable = [](const std::string& name) { return name != "box"; };
  Yield(0, 3);
  EXPECT_EQ(StateOf(0), TrialState::kPending);
  EXPECT_EQ(trial(0).failures, 0);
  Lose("box");
  Join("den", {.cpus = 2});
  EXPECT_EQ(HostOf(0), "den");
  EXPECT_EQ(trial(0).live->resume->step, Step(3));
}

// A gang's reports are 20 s apart.
class EndingExecutors : public Drains {
 protected:
  void JoinWithTimeLeft(const std::string& name, double seconds) {
    Do(JoinExecutor{
        .name = name, .instance = "a", .resources = {.cpus = 2}, .time_left = Seconds(seconds)});
  }
  static SweepSpec LongGangs() {
    SweepSpec spec = Gangs();
    spec.max_step = Step(100);
    return spec;
  }
  void ReportAfter20Seconds(int64_t step) {
    Wait(20);
    Tell(0, TrialReported{.report = {Step(step), {{"score", 0.9}}, Seconds(20.0 * step), false}});
  }
};

TEST_F(EndingExecutors, AGangLeavesIfThereIsNoTimeForTwoMoreReports) {
  Lose("box");
  JoinWithTimeLeft("short", 200);
  Create(LongGangs());
  ASSERT_EQ(HostOf(0), "short");
  for (int64_t step = 1; step <= 4; ++step) {
    ReportAfter20Seconds(step);
    EXPECT_FALSE(trial(0).yield_verdict) << "at step " << step;
  }
  ReportAfter20Seconds(5);  // 100 s are left; leaving takes up to 60 s
  ASSERT_TRUE(trial(0).yield_verdict);
  EXPECT_THAT(trial(0).yield_verdict->reason.text, testing::Mentions("short", "99 s", "20 s"));
  Wait(20);
  Yield(0, 6);
  EXPECT_EQ(StateOf(0), TrialState::kPending);
  EXPECT_EQ(trial(0).failures, 0);
  EXPECT_THAT(brain.Waiting(sweep()), testing::Mentions("92 s", "short", "79 s"));
  Join("den", {.cpus = 2});
  EXPECT_EQ(HostOf(0), "den");
}

TEST_F(EndingExecutors, AnExecutorWithTooLittleTimeFromTheStartIsStillUsed) {
  Lose("box");
  JoinWithTimeLeft("short", 75);
  Create(LongGangs());
  ASSERT_EQ(HostOf(0), "short");
  ReportAfter20Seconds(1);
  ReportAfter20Seconds(2);
  EXPECT_FALSE(trial(0).yield_verdict) << "no executor of this lifetime would let it report twice";
}

// Regression: the server crashed because it reserved slots on no executor.
TEST_F(EndingExecutors, NothingIsReservedOnAnExecutorThatEndsTooSoon) {
  Lose("box");
  JoinWithTimeLeft("short", 200);
  Join("small", {.cpus = 1});
  Create(LongGangs());
  ASSERT_EQ(HostOf(0), "short");
  const SweepId waits = Create(LongGangs());
  Wait(150);
  SweepSpec one = LongGangs();
  one.gang.workers = 1;
  Create(one);
  EXPECT_EQ(HostOf(0), "small");
  EXPECT_FALSE(brain.state().reservation);
  EXPECT_TRUE(sweep(waits).live.empty());
}

// Regression: the slots stayed idle until the next event.
TEST_F(EndingExecutors, AnExecutorThatNeverHadEnoughTimeIsUsedAtOnce) {
  Lose("box");
  JoinWithTimeLeft("short", 75);
  const SweepId first = Create(LongGangs());
  Join("den", {.cpus = 2});
  SweepSpec two = LongGangs();
  two.stop.max_trials = 2;
  Create(two);
  ASSERT_EQ(HostOf(0), "den");
  Wait(30);
  const Attempt& leaves = *sweep(first).Find(TrialNumber(0))->live;
  Do(RecordFact{leaves.epoch, AttemptEnded{leaves.id, Outcome::kFinished, {}}});
  EXPECT_EQ(HostOf(1), "") << "the time of a report is not known yet";
  ReportAfter20Seconds(1);
  EXPECT_EQ(HostOf(1), "short") << "no executor of this lifetime leaves enough time";
}

// Regression: the trial waited until the next event.
TEST_F(EndingExecutors, ATrialAvoidsAnExecutorOnlyUntilTheOthersEndTooSoon) {
  Lose("box");
  JoinWithTimeLeft("short", 200);
  const int64_t end = brain.state().executors.at("short").host.end_time.us;
  Create(LongGangs());
  Join("den", {.cpus = 2});
  Create(LongGangs());
  ASSERT_EQ(HostOf(0), "den");
  Fail(0, FailureKind::kEnvironment);
  Wait(60);
  ASSERT_EQ(HostOf(0), "") << "it avoids den and waits for short";
  now = brain.Due(Time{now})->us;
  EXPECT_EQ(now, end - 61'000'000 + 1) << "a gang needs 61 s";
  brain.Advance(Time{now});
  EXPECT_EQ(HostOf(0), "den");
}

// Regression: the time of the last event counted.
TEST_F(EndingExecutors, ATrialIsNotAskedToLeaveForAnExecutorThatEndsSoon) {
  Create(LongGangs());
  ASSERT_EQ(HostOf(0), "box");
  JoinWithTimeLeft("short", 200);
  Wait(170);
  Do(DrainExecutor{"box", "", true});
  EXPECT_FALSE(trial(0).yield_verdict);
}

// Regression: a gang that waits only for the end of its backoff was no demand until the next event.
TEST_F(EndingExecutors, ATrialIsADemandAfterItsBackoff) {
  SweepSpec spec = LongGangs();
  spec.failure.backoff = Seconds(30);
  Create(spec);
  Fail(0);
  Lose("box");
  EXPECT_THAT(brain.Demands(), IsEmpty());
  Wait(100);
  EXPECT_EQ(brain.Demands().size(), 1u);
  EXPECT_THAT(brain.Waiting(trial(0)), testing::Mentions("no executor"));
}

// Regression: the request stayed until the next event.
TEST_F(EndingExecutors, ARequestToGrowIsWithdrawnWhenTheExecutorEndsTooSoon) {
  Lose("box");
  const auto join = [&](const std::string& name, int gpus, double time_left) {
    Do(JoinExecutor{.name = name,
                    .instance = "a",
                    .resources = {.gpus = gpus},
                    .spans = true,
                    .folder = "shared",
                    .time_left = Seconds(time_left)});
  };
  join("den", 2, 0);
  SweepSpec spec = LongGangs();
  spec.gang = {.workers = 8, .per_worker = {.cpus = 0, .gpus = 1}};
  spec.gang.min_workers = 2;
  spec.gang.grow_after = Seconds(10);
  spec.max_concurrent_trials = 1;
  Create(spec);
  Report(0, 1, 0.5);
  Save(0, 1);
  join("short", 4, 80);
  Wait(11);
  ASSERT_TRUE(trial(0).yield_verdict);
  const Time due = *brain.Due(Time{now});
  EXPECT_EQ(due.us, brain.state().executors.at("short").host.end_time.us - 61'000'000 + 1);
  brain.Advance(due);
  EXPECT_FALSE(trial(0).yield_verdict);
}

TEST_F(EndingExecutors, ASnapshotKeepsTheTimeLeft) {
  JoinWithTimeLeft("short", 200);
  State loaded(algorithms);
  ASSERT_TRUE(LoadState(SaveState(brain.state()), loaded).ok());
  EXPECT_EQ(loaded.executors.at("short").host.lifetime, Seconds(200));
  EXPECT_EQ(loaded.ending, std::set<std::string>{"short"});
}

TEST_F(Drains, AMovedGangFetchesItsCheckpointFromTheDrainedExecutor) {
  JoinWithFolder("den", {.cpus = 4}, "of den");
  SweepSpec spec = Gangs();
  spec.gang.workers = 4;
  Create(spec);
  ASSERT_EQ(HostOf(0), "den");
  JoinWithFolder("own", {.cpus = 4}, "of own");
  Do(DrainExecutor{"den", "", true});
  Yield(0, 1);
  EXPECT_EQ(HostOf(0), "own");
  EXPECT_TRUE(CheckpointToFetch(brain.state(), trial(0)));
}

TEST_F(Drains, AGangWithoutAnotherPlaceFinishesWhereItIs) {
  Create(Gangs());
  Join("small", {.cpus = 1});
  Do(DrainExecutor{"box", "", true});
  EXPECT_FALSE(trial(0).yield_verdict);
}

TEST_F(Drains, AMovedGangReadsItsCheckpointFromASharedFolder) {
  JoinWithFolder("one", {.cpus = 4}, "shared");
  JoinWithFolder("two", {.cpus = 4}, "shared");
  SweepSpec spec = Gangs();
  spec.gang.workers = 4;
  Create(spec);
  ASSERT_EQ(HostOf(0), "one");
  Do(DrainExecutor{"one", "", true});
  Yield(0, 1);
  EXPECT_EQ(HostOf(0), "two");
}

TEST_F(Drains, ASpanningGangLeavesIfOneOfItsExecutorsIsDrained) {
  for (const char* name : {"n1", "n2", "n3"}) JoinSpanning(name, {.cpus = 4}, "shared");
  SweepSpec spec = Gangs();
  spec.gang.workers = 8;
  Create(spec);
  ASSERT_EQ(trial(0).live->ranks.back().executor, "n2");
  Do(DrainExecutor{"n2", "", true});
  ASSERT_TRUE(trial(0).yield_verdict);
  Tell(0, CheckpointSaved{.checkpoint = {Step(1), Path(0, 1), "sha256:"}}, "n1");
  Tell(0, TrialReported{.report = {Step(1), {{"score", 0.9}}, Seconds(0), true}}, "n1");
  Tell(0, AttemptEnded{.outcome = Outcome::kFinished}, "n1");
  Tell(0, AttemptEnded{.outcome = Outcome::kFinished}, "n2");
  EXPECT_EQ(HostOf(0), "n1");
  EXPECT_EQ(trial(0).live->ranks.back().executor, "n3");
}

TEST_F(Drains, ATrialOfAStoppingSweepIsNotMoved) {
  Join("den", {.cpus = 2});
  Create(Gangs(2));
  Do(StopSweep{id()});
  Do(DrainExecutor{"box", "", true});
  EXPECT_FALSE(trial(0).yield_verdict);
}

TEST_F(Drains, AStopOfTheSweepLetsAMovingTrialContinue) {
  Join("den", {.cpus = 2});
  Create(Gangs());
  Do(DrainExecutor{"box", "", true});
  Do(StopSweep{id()});
  Save(0, 1);
  EXPECT_EQ(Find<TrialDecided>(Report(0, 1, 0.9, true))->verdict.kind, VerdictKind::kContinue);
  EXPECT_EQ(trial(0).state, TrialState::kRunning);
}

TEST_F(Drains, APauseOfTheSweepDoesNotCancelAMove) {
  Join("den", {.cpus = 2});
  Create(Gangs());
  Do(DrainExecutor{"box", "", true});
  Do(PauseSweep{id()});
  Do(ResumeSweep{id()});
  ASSERT_TRUE(trial(0).yield_verdict);
  Yield(0, 1);
  EXPECT_EQ(HostOf(0), "den");
}

TEST_F(Drains, ATrialWhoseCheckpointCannotBeSentWaits) {
  JoinWithFolder("own", {.cpus = 4}, "of own");
  SweepSpec spec = Gangs();
  spec.gang.workers = 4;
  Create(spec);
  SaveAndReport(0, 1);
  Do(DrainExecutor{"own", ""});
  Fail(0);
  reachable = [](const std::string& name) { return name != "own"; };
  EXPECT_THAT(brain.Waiting(trial(0)), testing::Mentions("own", "drained"));
  JoinWithFolder("other", {.cpus = 4}, "of other");
  EXPECT_EQ(HostOf(0), "");
  Lose("own");
  EXPECT_EQ(HostOf(0), "other");
}

TEST_F(Drains, AReservationOnADrainedExecutorIsReleased) {
  Join("big", {.cpus = 4});
  SweepSpec small = Gangs(0);
  small.gang.workers = 1;
  const SweepId first = Create(small);
  SweepSpec large = Gangs();
  large.gang.workers = 4;
  Create(large);
  const Attempt live = *sweep(first).Find(*sweep(first).live.rbegin())->live;
  Do(RecordFact{live.epoch, AttemptEnded{live.id, Outcome::kFinished, {}}});
  ASSERT_TRUE(brain.state().reservation);
  const auto events = Do(DrainExecutor{"big", ""});
  ASSERT_NE(Find<ReservationReleased>(events), nullptr);
  EXPECT_THAT(Find<ReservationReleased>(events)->reason, testing::Mentions("big", "drained"));
}

TEST_F(Drains, ARepeatedDrainChangesNothing) {
  Do(DrainExecutor{"box", "hot"});
  EXPECT_THAT(Do(DrainExecutor{"box", ""}), IsEmpty());
  EXPECT_THAT(Do(DrainExecutor{"box", "hot"}), IsEmpty());
  const auto since = brain.state().executors.at("box").drain->since;
  EXPECT_EQ(Find<ExecutorDrained>(Do(DrainExecutor{"box", "", true}))->reason, "hot");
  EXPECT_EQ(brain.state().executors.at("box").drain->since, since);
  Do(ResumeExecutor{"box"});
  EXPECT_THAT(Do(ResumeExecutor{"box"}), IsEmpty());
}

TEST_F(Drains, AnUnknownExecutorIsNotFound) {
  EXPECT_EQ(RefusalOf(DrainExecutor{"boks", ""}).code, ErrorCode::kNotFound);
  EXPECT_THAT(RefusalOf(DrainExecutor{"boks", ""}).message, testing::Mentions("boks"));
  EXPECT_EQ(RefusalOf(ResumeExecutor{"boks"}).code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace attune
