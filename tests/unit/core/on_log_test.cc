#include "core/state/snapshot.h"
#include "tests/support/mentions.h"
#include "tests/unit/core/brain_harness.h"

namespace attune {
namespace {

using ::testing::IsEmpty;

// Gangs need two CPUs, and one runs at a time. "box" and "den" have two CPUs each.
class OnLog : public BrainTest {
 protected:
  static SweepSpec Gangs(LogAction action) {
    SweepSpec spec = testing::ToySpec();
    spec.gang = {.workers = 2, .per_worker = {.cpus = 1}};
    spec.stop.max_trials = 2;
    spec.max_concurrent_trials = 1;
    spec.failure.max_restarts = 1;
    spec.failure.backoff = Seconds(0);
    spec.failure.on_log = {{"CUDA error|ECC", action}};
    return spec;
  }
  std::string HostOf(uint32_t number) const {
    const Trial* created = sweep().Find(TrialNumber(number));
    return created != nullptr && created->live ? created->live->ranks.front().executor : "";
  }
  // Trial 0 has failed on box and waits for den, which trial 1 uses. Trial 2 runs on box.
  void AvoidBox() {
    Join("den", {.cpus = 2});
    SweepSpec spec = Gangs(LogAction::kRetryElsewhere);
    spec.max_concurrent_trials = 0;
    spec.stop.max_trials = 3;
    Create(spec);
    ASSERT_EQ(HostOf(1), "den");
    FailWithLogLine(0);
  }
  std::vector<Event> FailWithLogLine(uint32_t number,
                                     const std::string& pattern = "CUDA error|ECC") {
    AttemptEnded end{.outcome = Outcome::kFailed};
    end.failure = {.kind = FailureKind::kExit,
                   .rank = 1,
                   .exit_code = 1,
                   .message = "rank 1: exit code 1",
                   .pattern = pattern,
                   .line = pattern.empty() ? "" : "uncorrectable ECC error"};
    return Tell(number, end);
  }
};

TEST_F(OnLog, ATrialMovesToAnotherHostWithoutACharge) {
  Join("den", {.cpus = 2});
  Create(Gangs(LogAction::kRetryElsewhere));
  ASSERT_EQ(HostOf(0), "box");
  FailWithLogLine(0);
  EXPECT_EQ(HostOf(0), "den");
  EXPECT_EQ(trial(0).failures, 0);
  EXPECT_THAT(Last<TrialRequeued>([](const auto&) { return true; }).reason,
              testing::Mentions("attempt 1: rank 1: exit code 1", "uncorrectable ECC error",
                                "failure.on_log", "CUDA error|ECC", "box"));
  Finish(0);
  EXPECT_EQ(HostOf(1), "box") << "other trials of the sweep still use box";
}

TEST_F(OnLog, AFailureOnTheOnlyHostIsChargedTheSecondTime) {
  Create(Gangs(LogAction::kRetryElsewhere));
  FailWithLogLine(0);
  EXPECT_EQ(HostOf(0), "box");
  EXPECT_EQ(trial(0).failures, 0);
  FailWithLogLine(0);
  EXPECT_EQ(trial(0).failures, 1);
  FailWithLogLine(0);
  EXPECT_EQ(StateOf(0), TrialState::kFailed) << "after max_restarts";
}

TEST_F(OnLog, AWaitingTrialIsOvertakenWhileTheOtherHostIsBusy) {
  AvoidBox();
  EXPECT_EQ(HostOf(0), "");
  EXPECT_EQ(HostOf(2), "box");
  EXPECT_THAT(brain.Waiting(trial(0)), testing::Mentions("failure.on_log", "box"));
  Finish(1);
  EXPECT_EQ(HostOf(0), "den");
}

TEST_F(OnLog, AHostIsExcludedOnlyForTheSweep) {
  Join("den", {.cpus = 2});
  Create(Gangs(LogAction::kExcludeHost));
  const auto events = FailWithLogLine(0);
  ASSERT_NE(Find<ExecutorExcluded>(events), nullptr);
  EXPECT_EQ(Find<ExecutorExcluded>(events)->name, "box");
  EXPECT_EQ(HostOf(0), "den");
  EXPECT_EQ(trial(0).failures, 0);
  Finish(0);
  EXPECT_EQ(HostOf(1), "den");
  Create(Gangs(LogAction::kExcludeHost));
  EXPECT_EQ(HostOf(0), "box");
}

TEST_F(OnLog, ASweepWhoseOnlyHostIsExcludedWaitsUntilTheHostRestarts) {
  Create(Gangs(LogAction::kExcludeHost));
  FailWithLogLine(0);
  EXPECT_EQ(HostOf(0), "");
  EXPECT_THAT(brain.Waiting(sweep()),
              testing::Mentions("failure.on_log", "box", "attune executor resume"));
  Join("box", {.cpus = 2}, "another process");
  EXPECT_EQ(HostOf(0), "box");
}

TEST_F(OnLog, AUserMayResumeAnExcludedHost) {
  Create(Gangs(LogAction::kExcludeHost));
  FailWithLogLine(0);
  ASSERT_NE(Find<ExecutorResumed>(Do(ResumeExecutor{"box"})), nullptr);
  EXPECT_EQ(HostOf(0), "box");
  FailWithLogLine(0);
  EXPECT_EQ(trial(0).failures, 0) << "the second failure is not charged either";
}

TEST_F(OnLog, ATrialStartsOnAnAvoidedHostOnceItIsResumed) {
  AvoidBox();
  Finish(2);
  ASSERT_EQ(HostOf(0), "") << "box is free, and den is not";
  ASSERT_NE(Find<ExecutorResumed>(Do(ResumeExecutor{"box"})), nullptr);
  EXPECT_EQ(HostOf(0), "box");
}

// An ended sweep does not learn that an executor is resumed.
TEST_F(OnLog, AReopenedSweepExcludesNoHost) {
  Join("den", {.cpus = 2});
  SweepSpec spec = Gangs(LogAction::kExcludeHost);
  spec.stop.max_trials = 1;
  Create(spec);
  FailWithLogLine(0);
  ASSERT_EQ(HostOf(0), "den");
  Finish(0);
  ASSERT_EQ(brain.state().Find(id()), nullptr);
  Lose("den");
  Do(ExtendSweep{.sweep = id(), .max_trials = 2});
  EXPECT_EQ(HostOf(1), "box");
}

// The record of a trial that has left the state does not name the executors that it avoided.
TEST_F(OnLog, AReopenedTrialAvoidsNoHost) {
  SweepSpec spec = Gangs(LogAction::kRetryElsewhere);
  spec.checkpoint = {.keep_last = 0, .keep_best = 0};
  Create(spec);
  FailWithLogLine(0);
  SaveAndReport(0, 1);  // a trial with the sweep's best report stays in memory
  const auto kept = trial(0).checkpoints;
  Do(KillTrial{Id(0)});
  Finish(0);
  ASSERT_TRUE(brain.state().Find(Id(0)));
  ASSERT_TRUE(trial(0).avoided.contains("box"));
  Do(ReopenTrial{.record = RecordOf(0, Step(1), kept)});
  EXPECT_THAT(trial(0).avoided, IsEmpty());
  Finish(1);
  ASSERT_EQ(HostOf(0), "box");
  FailWithLogLine(0);
  EXPECT_EQ(trial(0).failures, 0);
}

TEST_F(OnLog, AMatchOfFailTrialEndsTheTrial) {
  Create(Gangs(LogAction::kFail));
  FailWithLogLine(0);
  EXPECT_EQ(StateOf(0), TrialState::kFailed);
  EXPECT_THAT(Last<TrialEnded>([](const auto&) { return true; }).reason,
              testing::Mentions("uncorrectable ECC error"));
}

TEST_F(OnLog, AFailureWithoutAMatchIsRetriedAsUsual) {
  Join("den", {.cpus = 2});
  Create(Gangs(LogAction::kRetryElsewhere));
  FailWithLogLine(0, "");
  EXPECT_EQ(trial(0).failures, 1);
  EXPECT_THAT(brain.state().Find(Id(0))->avoided, IsEmpty());
}

TEST_F(OnLog, RulesThatAnEditRemovedNoLongerApply) {
  Create(Gangs(LogAction::kFail));
  SweepSpec spec = sweep().spec;
  spec.failure.on_log.clear();
  Do(EditSweep{.sweep = id(), .spec = spec, .seen = brain.state().last_seq});
  FailWithLogLine(0);
  EXPECT_EQ(trial(0).failures, 1);
  EXPECT_EQ(StateOf(0), TrialState::kRunning);
}

TEST_F(OnLog, ASnapshotKeepsAvoidedAndExcludedHosts) {
  Join("den", {.cpus = 2});
  Create(Gangs(LogAction::kExcludeHost));
  FailWithLogLine(0);
  State loaded(algorithms);
  ASSERT_TRUE(LoadState(SaveState(brain.state()), loaded).ok());
  EXPECT_EQ(loaded.Find(id())->excluded, sweep().excluded);
  EXPECT_EQ(loaded.Find(Id(0))->avoided, trial(0).avoided);
}

}  // namespace
}  // namespace attune
