#include "core/brain/quarantine.h"

#include "core/state/snapshot.h"
#include "tests/support/mentions.h"
#include "tests/unit/core/brain_harness.h"

namespace attune {
namespace {

// Gangs have two workers with one CPU each. "box" and "den" have two CPUs each.
class UnfitHosts : public BrainTest {
 protected:
  static SweepSpec Gangs(int max_trials = 20) {
    SweepSpec spec = testing::ToySpec();
    spec.gang = {.workers = 2, .per_worker = {.cpus = 1}};
    spec.stop.max_trials = max_trials;
    spec.failure = {.max_restarts = 0, .max_failed_trials = 100, .backoff = Seconds(0)};
    return spec;
  }
  const Executor& executor(const std::string& name) const {
    return brain.state().executors.at(name);
  }
  // The trial that runs on this executor.
  std::optional<uint32_t> TrialOn(const std::string& name) const {
    const auto& attempts = executor(name).attempts;
    if (attempts.empty()) return std::nullopt;
    return attempts.begin()->second.number.value;
  }
  void FailOn(const std::string& name) {
    ASSERT_TRUE(TrialOn(name));
    Fail(TrialOn(name).value());
  }
  void SucceedOn(const std::string& name) {
    Tell(TrialOn(name).value(), AttemptFirstStep{});
    Report(TrialOn(name).value(), 1, 0.9);
  }
  void ReportHealthOf(const std::string& name, const std::string& problem) {
    Do(ReportHealth{name, executor(name).incarnation, problem});
  }
  // Quarantines box for the first time.
  void QuarantineBox() {
    Join("den", {.cpus = 2});
    Create(Gangs());
    SucceedOn("den");
    for (size_t i = 0; i < kFailuresInARow; ++i) FailOn("box");
    ASSERT_TRUE(executor("box").quarantine);
  }
};

TEST_F(UnfitHosts, AnUnhealthyHostStartsNothingAndItsGangsContinue) {
  Create(Gangs(2));
  ReportHealthOf("box", "its disk has 0.2 GiB left (/data), less than 1.0 GiB");
  Report(0, 1, 0.9);
  Finish(0);
  EXPECT_EQ(StateOf(0), TrialState::kCompleted);
  EXPECT_THAT(brain.Waiting(sweep()),
              testing::Mentions("box", "its disk has 0.2 GiB left (/data), less than 1.0 GiB"));
  ReportHealthOf("box", "");
  EXPECT_EQ(TrialOn("box"), 1u);
}

TEST_F(UnfitHosts, ARepeatedProblemIsNotLogged) {
  ReportHealthOf("box", "hot");
  const size_t events = log.size();
  ReportHealthOf("box", "hot");
  EXPECT_EQ(log.size(), events);
}

TEST_F(UnfitHosts, AProblemOfAnEarlierProcessIsIgnored) {
  const Incarnation before = executor("box").incarnation;
  ReportHealthOf("box", "hot");
  Join("box", {.cpus = 2}, "another process");
  EXPECT_EQ(executor("box").problem, "");
  Do(ReportHealth{"box", before, "hot"});
  EXPECT_EQ(executor("box").problem, "");
}

TEST_F(UnfitHosts, AHostWhoseGangsKeepFailingIsQuarantinedWhileAnotherWorks) {
  QuarantineBox();
  EXPECT_THAT(executor("box").quarantine->reason,
              testing::Mentions("4 gangs", "4 trials", "den", "60 s"));
  EXPECT_EQ(TrialOn("box"), std::nullopt);
  EXPECT_TRUE(TrialOn("den"));
}

TEST_F(UnfitHosts, AFailureAfterAQuarantineDoublesIt) {
  QuarantineBox();
  Wait(59);
  EXPECT_EQ(TrialOn("box"), std::nullopt);
  Wait(1.1);
  ASSERT_TRUE(TrialOn("box"));
  FailOn("box");
  ASSERT_TRUE(executor("box").quarantine);
  EXPECT_THAT(executor("box").quarantine->reason, testing::Mentions("120 s"));
}

TEST_F(UnfitHosts, ASuccessClearsTheRecordOfItsHost) {
  QuarantineBox();
  Wait(60.1);
  const uint32_t well = TrialOn("box").value();
  Report(well, 1, 0.9);
  Finish(well);
  for (size_t i = 0; i + 1 < kFailuresInARow; ++i) FailOn("box");
  EXPECT_FALSE(executor("box").quarantine);
  FailOn("box");
  EXPECT_TRUE(executor("box").quarantine);
  EXPECT_EQ(executor("box").gang_history.times, 1);
}

TEST_F(UnfitHosts, AProgramThatFailsEverywhereQuarantinesNoExecutor) {
  Join("den", {.cpus = 2});
  Create(Gangs());
  Report(0, 1, 0.9);
  for (int i = 0; i < 6; ++i) {
    FailOn("box");
    FailOn("den");
  }
  EXPECT_FALSE(executor("box").quarantine);
  EXPECT_FALSE(executor("den").quarantine);
}

TEST_F(UnfitHosts, OneTrialThatKeepsFailingQuarantinesNoExecutor) {
  Join("den", {.cpus = 2});
  SweepSpec spec = Gangs(2);
  spec.failure.max_restarts = 10;
  Create(spec);
  SucceedOn("den");
  for (int i = 0; i < 6; ++i) FailOn("box");
  EXPECT_FALSE(executor("box").quarantine);
}

TEST_F(UnfitHosts, TheLastRemainingHostIsTriedAgainAtOnce) {
  QuarantineBox();
  Lose("den");
  EXPECT_FALSE(executor("box").quarantine);
  EXPECT_TRUE(TrialOn("box"));
}

TEST_F(UnfitHosts, AUserMayEndAQuarantine) {
  QuarantineBox();
  EXPECT_NE(Find<ExecutorResumed>(Do(ResumeExecutor{"box"})), nullptr);
  EXPECT_TRUE(TrialOn("box"));
  FailOn("box");
  EXPECT_FALSE(executor("box").quarantine) << "its record was cleared";
}

TEST_F(UnfitHosts, ASnapshotKeepsProblemsAndQuarantines) {
  QuarantineBox();
  Join("far", {.cpus = 2});
  ReportHealthOf("den", "hot");
  State loaded(algorithms);
  ASSERT_TRUE(LoadState(SaveState(brain.state()), loaded).ok());
  EXPECT_EQ(loaded.executors.at("box").quarantine->until, executor("box").quarantine->until);
  EXPECT_EQ(loaded.executors.at("box").gang_history.times, 1);
  EXPECT_EQ(loaded.executors.at("den").problem, "hot");
}

}  // namespace
}  // namespace attune
