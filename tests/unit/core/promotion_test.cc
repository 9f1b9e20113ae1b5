#include "core/brain/audit.h"
#include "core/state/snapshot.h"
#include "tests/support/mentions.h"
#include "tests/unit/core/brain_harness.h"

// Tests of the answers of schedulers to a free slot.
namespace attune {
namespace {

using ::testing::IsEmpty;

class PromotionTest : public BrainTest {
 protected:
  SweepSpec SpecOf(const std::string& scheduler, int trials = 4) {
    SweepSpec spec = testing::ToySpec();
    spec.scheduler.name = scheduler;
    spec.stop.max_trials = trials;
    spec.checkpoint = {.keep_last = 1, .keep_best = 0};
    return spec;
  }

  // The trial waits at step 2 with this score, saves, and leaves its slots.
  std::vector<Event> Pause(uint32_t number, double score) {
    Save(number, 2);
    Report(number, 2, score, /*waits=*/true);
    return Finish(number);
  }

  // The first fault that the audit finds in the log; "" if it finds none.
  std::string FirstAuditFault() const {
    Auditor auditor(algorithms);
    for (const Event& event : log) {
      if (auto fault = auditor.Next(event)) return *fault;
    }
    return "";
  }

  // Whether replaying the log and loading the snapshot both give this state.
  bool IsRebuilt() const {
    Brain replayed(algorithms, [](const std::string&) { return true; });
    for (const Event& event : log) replayed.Replay(event);
    Brain loaded(algorithms, [](const std::string&) { return true; });
    const std::string saved = SaveState(brain.state());
    return loaded.Load(saved).ok() && SaveState(loaded.state()) == saved &&
           SaveState(replayed.state()) == saved;
  }
};

TEST_F(PromotionTest, APromotionIsLoggedWithItsReasonAndStartsAnAttempt) {
  Create(SpecOf("toy"));
  const auto events = Pause(0, 0.5);
  const auto* promoted = Find<TrialPromoted>(events);
  ASSERT_NE(promoted, nullptr);
  EXPECT_EQ(promoted->trial, Id(0));
  EXPECT_EQ(promoted->reason.rule, "toy");
  EXPECT_EQ(Find<AttemptAssigned>(events)->attempt, (AttemptId{Id(0), 2}));
  EXPECT_EQ(Find<AttemptAssigned>(events)->resume->step, Step(2));
  EXPECT_EQ(FirstAuditFault(), "");
  EXPECT_TRUE(IsRebuilt());
}

TEST_F(PromotionTest, ATrialIsNotPromotedBeforeItsGangHasLeft) {
  Create(SpecOf("toy"));
  EXPECT_EQ(Find<TrialPromoted>(Report(0, 2, 0.5, /*waits=*/true)), nullptr);
  EXPECT_THAT(sweep().paused, IsEmpty());
}

TEST_F(PromotionTest, AnAskGetsAPromotedTrialWithItsNextAttempt) {
  SweepSpec spec = SpecOf("toy");
  spec.program.command.clear();
  Create(spec);
  Do(AskTrial{id(), "a"});
  Save(0, 2);
  Report(0, 2, 0.5, /*waits=*/true);
  const auto events = Do(AskTrial{id(), "b"});
  EXPECT_NE(Find<TrialPromoted>(events), nullptr);
  EXPECT_EQ(Find<AttemptAssigned>(events)->attempt, (AttemptId{Id(0), 2}));
}

// ---- a synchronous bracket --------------------------------------------------------------

TEST_F(PromotionTest, ABracketWaitsForAllTrialsAndPromotesTheBest) {
  Create(SpecOf("bracket", 100));
  Pause(0, 0.1);
  Pause(1, 0.9);
  EXPECT_EQ(sweep().created, 3) << "a slot stays free";
  const auto events = Pause(2, 0.5);
  ASSERT_NE(Find<TrialPromoted>(events), nullptr);
  EXPECT_EQ(Find<TrialPromoted>(events)->trial, Id(1));
  EXPECT_EQ(trial(1).milestone, Step(6));
  Report(1, 6, 0.9, /*waits=*/true);
  Finish(1);
  EXPECT_EQ(StateOf(id()), SweepState::kCompleted);
  EXPECT_NE(DescribeEnding().reason, "");
  EXPECT_EQ(StateOf(0), TrialState::kStopped);
  EXPECT_EQ(FirstAuditFault(), "");
}

TEST_F(PromotionTest, ATrialLostAfterTheBracketIsCompleteRunsAgain) {
  Create(SpecOf("bracket", 100));
  Pause(0, 0.1);
  Pause(1, 0.9);
  Pause(2, 0.5);
  Do(LoseExecutor{"box", Incarnation(1), "its lease has run out"});
  EXPECT_EQ(trial(1).state, TrialState::kPending);
  const auto events = Join("other", {.cpus = 2});
  EXPECT_EQ(Find<AttemptAssigned>(events)->attempt, (AttemptId{Id(1), 3}));
}

// ---- no sweep waits forever ---------------------------------------------------------------------

TEST_F(PromotionTest, ASchedulerThatWaitsForNothingEndsPausedTrialsAndTheSweep) {
  Create(SpecOf("stuck", 100));
  Pause(0, 0.1);
  EXPECT_EQ(trial(0).state, TrialState::kPaused);
  Pause(1, 0.9);
  EXPECT_EQ(StateOf(0), TrialState::kStopped);
  EXPECT_EQ(StateOf(id()), SweepState::kCompleted);
  EXPECT_THAT(DescribeEnding().reason, testing::Mentions("scheduler stuck"));
  const auto ended = Last<TrialEnded>([&](const TrialEnded& fact) { return fact.trial == Id(0); });
  EXPECT_THAT(ended.reason, testing::Mentions("not promoted", "scheduler stuck"));
}

TEST_F(PromotionTest, APausedSweepIsNotEndedWhileItsSchedulerWaits) {
  Create(SpecOf("stuck", 100));
  Pause(0, 0.1);
  Do(PauseSweep{id()});
  Pause(1, 0.9);
  EXPECT_EQ(StateOf(id()), SweepState::kPaused);
  EXPECT_EQ(trial(0).state, TrialState::kPaused);
}

TEST_F(PromotionTest, ASweepWhoseSchedulerWaitsDoesNotReportMissingResources) {
  Create(SpecOf("stuck", 100));
  Pause(0, 0.1);
  EXPECT_EQ(brain.Waiting(sweep()), "");
  EXPECT_THAT(brain.Waiting(trial(0)), testing::Mentions("scheduler"));
}

// ---- donors -------------------------------------------------------------------------------------

TEST_F(PromotionTest, APromotionMayCloneAnEndedDonor) {
  Create(SpecOf("donors", 3));
  Save(0, 1);
  Save(0, 2);
  Report(0, 2, 0.9);
  Do(KillTrial{Id(0)});
  Finish(0);
  ASSERT_NE(sweep().Find(TrialNumber(0)), nullptr)
      << "a trial stays while the scheduler retains its checkpoint";
  EXPECT_EQ(trial(0).checkpoints.size(), 2u);

  const auto events = Pause(1, 0.1);
  ASSERT_NE(Find<TrialPromoted>(events), nullptr);
  EXPECT_EQ(Find<TrialPromoted>(events)->donor, (CheckpointId{Id(0), 1, Step(1)}));
  EXPECT_EQ(Find<AttemptAssigned>(events)->resume->path, Path(0, 1));
  EXPECT_EQ(trial(1).config, (Config{{"x", int64_t{999}}}));
  EXPECT_EQ(trial(1).last_step, Step(1));
  EXPECT_EQ(FirstAuditFault(), "");
  EXPECT_TRUE(IsRebuilt());
}

TEST_F(PromotionTest, CheckpointsThatTheSchedulerReleasesAreDropped) {
  Create(SpecOf("donors", 3));
  Save(0, 1);
  Save(0, 2);
  Report(0, 2, 0.9);
  Do(KillTrial{Id(0)});
  Finish(0);
  Pause(1, 0.1);
  Pause(2, 0.1);  // the second clone, and the last
  EXPECT_THAT(sweep().retained, IsEmpty());
  EXPECT_NE(sweep().Find(TrialNumber(0)), nullptr) << "two clones have no checkpoint yet";
  SaveAndReport(1, 3);
  const auto events = SaveAndReport(2, 3);
  ASSERT_NE(Find<CheckpointDropped>(events), nullptr);
  EXPECT_EQ(Find<CheckpointDropped>(events)->path, Path(0, 1));
}

TEST_F(PromotionTest, AnEndedSweepKeepsNothingForItsScheduler) {
  Create(SpecOf("donors", 2));
  Save(0, 1);
  Save(0, 2);
  Do(KillTrial{Id(0)});
  Finish(0);
  Report(1, 6, 0.5, /*waits=*/true);
  const auto events = Finish(1);
  ASSERT_NE(Find<CheckpointDropped>(events), nullptr);
  EXPECT_EQ(Find<CheckpointDropped>(events)->path, Path(0, 1));
  EXPECT_EQ(StateOf(id()), SweepState::kCompleted);
}

TEST_F(PromotionTest, AnExploitOfADroppedCheckpointContinuesUnchanged) {
  Create(SpecOf("cloner"));
  const auto events = Report(1, 4, 0.1, /*waits=*/true);
  EXPECT_EQ(Find<TrialDecided>(events)->verdict.kind, VerdictKind::kContinue);
  EXPECT_THAT(Find<TrialDecided>(events)->verdict.reason.text, testing::Mentions("trial 0"));
}

TEST_F(PromotionTest, TheAuditFindsAForgedPromotion) {
  Create(SpecOf("toy"));
  Pause(0, 0.5);
  for (Event& event : log) {
    if (auto* promoted = std::get_if<TrialPromoted>(&event.fact))
      promoted->reason = {.rule = "forged", .text = "forged"};
  }
  EXPECT_THAT(FirstAuditFault(), testing::Mentions("s1/0", "forged", "first"));
}

}  // namespace
}  // namespace attune
