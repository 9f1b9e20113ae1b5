#include "core/state/snapshot.h"
#include "tests/support/mentions.h"
#include "tests/unit/core/brain_harness.h"

namespace attune {
namespace {

using ::testing::ElementsAre;

// A gang of four over two executors with two CPUs each.
class Spanning : public BrainTest {
 protected:
  Spanning() {
    JoinSpanning("a", {.cpus = 2});
    JoinSpanning("b", {.cpus = 2});
  }
  static SweepSpec SpanningSpec(int workers = 4) {
    SweepSpec spec = testing::ToySpec();
    spec.gang = {.workers = workers, .per_worker = {.cpus = 1}};
    spec.stop.max_trials = 1;
    spec.failure.max_restarts = 1;
    spec.failure.backoff = Seconds(0);
    return spec;
  }
  int FreeCpus(const std::string& executor) const {
    return brain.state().executors.at(executor).host.cpus_free;
  }
  std::vector<std::string> ShouldRun(const std::string& executor) const {
    std::vector<std::string> wanted;
    for (const Trial* each : TrialsToRunOn(brain.state(), executor))
      wanted.push_back(ToString(each->live->id));
    return wanted;
  }
  std::vector<std::string> AttemptsToCancel(const std::string& executor) const {
    std::vector<std::string> unwanted;
    for (const Trial* each : TrialsToEndOn(brain.state(), executor))
      unwanted.push_back(ToString(each->live->id));
    return unwanted;
  }
  std::vector<Event> EndPart(const std::string& executor, Outcome outcome,
                             const std::string& message = "") {
    return Tell(0,
                AttemptEnded{.outcome = outcome,
                             .failure = {.kind = outcome == Outcome::kFailed ? FailureKind::kExit
                                                                             : FailureKind::kNone,
                                         .message = message}},
                executor);
  }
  std::vector<Event> LosePeer(const std::string& executor) {
    return Tell(
        0,
        AttemptEnded{
            .outcome = Outcome::kFailed,
            .failure = {.kind = FailureKind::kExit, .message = "lost contact", .lost_peer = true}},
        executor);
  }
};

TEST_F(Spanning, AGangTooLargeForOneExecutorSpansSeveral) {
  Create(SpanningSpec());
  const auto& ranks = trial(0).live->ranks;
  ASSERT_EQ(ranks.size(), 4u);
  EXPECT_EQ(ranks[0].executor, "a");
  EXPECT_EQ(ranks[3].executor, "b");
  EXPECT_EQ(ranks[3].local_rank, 1);
  EXPECT_EQ(FreeCpus("a"), 0);
  EXPECT_EQ(FreeCpus("b"), 0);
  EXPECT_THAT(ShouldRun("a"), ElementsAre("s1/0.1"));
  EXPECT_THAT(ShouldRun("b"), ElementsAre("s1/0.1"));
}

TEST_F(Spanning, AnEndedPartFreesOnlyItsSlots) {
  Create(SpanningSpec());
  const auto events = EndPart("b", Outcome::kFinished);
  ASSERT_NE(Find<AttemptPartEnded>(events), nullptr);
  EXPECT_EQ(Find<AttemptEnded>(events), nullptr);
  EXPECT_EQ(FreeCpus("b"), 2);
  EXPECT_EQ(FreeCpus("a"), 0);
  EXPECT_EQ(sweep().used.cpus, 2);
  EXPECT_THAT(ShouldRun("a"), ElementsAre("s1/0.1")) << "the other part ends without being asked";
  EXPECT_THAT(ShouldRun("b"), ElementsAre());
  EndPart("b", Outcome::kFinished);  // repeats the message
  EndPart("a", Outcome::kFinished);
  EXPECT_EQ(StateOf(0), TrialState::kCompleted);
}

// Only the executor of rank 0 has the checkpoint, and its part of the gang ends first.
TEST_F(BrainTest, AnExecutorIsNeededUntilItsGangHasLeftTheOthers) {
  JoinSpanning("a", {.cpus = 2}, "of a");
  JoinSpanning("b", {.cpus = 2}, "of b");
  SweepSpec spec = testing::ToySpec();
  spec.gang = {.workers = 4, .per_worker = {.cpus = 1}};
  spec.stop.max_trials = 1;
  spec.checkpoint.keep_last = 2;
  Create(spec);
  Tell(0, CheckpointSaved{.checkpoint = {Step(1), Path(0, 1), "sha256:"}}, "a");
  Tell(0, TrialReported{.report = {Step(1), {{"score", 0.5}}}}, "a");
  ASSERT_EQ(trial(0).checkpoints.size(), 1u);
  EXPECT_FALSE(brain.IsNeeded("a", true)) << "the gang runs there";
  const auto end = [&](const std::string& executor) {
    Tell(0, AttemptEnded{.outcome = Outcome::kKilled}, executor);
  };
  end("a");
  EXPECT_TRUE(brain.IsNeeded("a", false));
  EXPECT_FALSE(brain.IsNeeded("b", false));
  connected = false;
  end("b");
  EXPECT_FALSE(brain.IsNeeded("a", false)) << "no other executor could run the gang";
  EXPECT_TRUE(brain.IsNeeded("a", true)) << "one may join";
}

TEST_F(Spanning, TheFirstFailureEndsTheAttemptAndTheOtherParts) {
  Create(SpanningSpec());
  EndPart("b", Outcome::kFailed, "it broke");
  EXPECT_THAT(AttemptsToCancel("a"), ElementsAre("s1/0.1"));
  EXPECT_THAT(ShouldRun("a"), ElementsAre());
  EXPECT_EQ(trial(0).failures, 0) << "the failure counts once the gang has left";
  const auto events = EndPart("a", Outcome::kKilled);
  ASSERT_NE(Find<AttemptEnded>(events), nullptr);
  EXPECT_EQ(Find<AttemptEnded>(events)->outcome, Outcome::kFailed);
  EXPECT_THAT(Find<AttemptEnded>(events)->failure.message,
              testing::Mentions("executor b", "it broke"));
  EXPECT_THAT(Find<TrialRequeued>(events)->reason,
              testing::Mentions("executor b", "it broke", "1 of 1"));
  EXPECT_EQ(trial(0).failures, 1);
}

TEST_F(Spanning, AVictimThatReportsFirstIsNotBlamed) {
  Create(SpanningSpec());
  LosePeer("a");
  EXPECT_THAT(AttemptsToCancel("b"), ElementsAre("s1/0.1")) << "the whole gang must leave";
  const auto events = EndPart("b", Outcome::kFailed, "it broke");
  EXPECT_THAT(Find<AttemptEnded>(events)->failure.message,
              testing::Mentions("executor b", "it broke"));
  EXPECT_FALSE(Find<AttemptEnded>(events)->failure.lost_peer);
}

TEST_F(Spanning, AVictimIsBlamedIfThereIsNoOtherCause) {
  Create(SpanningSpec());
  LosePeer("a");
  const auto events = EndPart("b", Outcome::kKilled);
  EXPECT_THAT(Find<AttemptEnded>(events)->failure.message,
              testing::Mentions("executor a", "lost contact"));
  EXPECT_EQ(trial(0).failures, 1);
}

TEST_F(Spanning, VictimsOfALostExecutorAreNotCharged) {
  Create(SpanningSpec());
  LosePeer("a");
  const auto events = Lose("b");
  EXPECT_EQ(Find<AttemptEnded>(events)->outcome, Outcome::kLost);
  EXPECT_THAT(Find<TrialRequeued>(events)->reason, testing::Mentions("executor b", "silent"));
  EXPECT_EQ(trial(0).failures, 0);
}

TEST_F(Spanning, TheRendezvousIsLoggedOnce) {
  Create(SpanningSpec());
  const RendezvousOpened opened{.rendezvous = {"10.0.0.3", 4000, "10.0.0.3", 4001}};
  EXPECT_TRUE(Tell(0, opened, "b").empty()) << "rank 0 is on a";
  EXPECT_NE(Find<RendezvousOpened>(Tell(0, opened, "a")), nullptr);
  EXPECT_EQ(trial(0).live->rendezvous, opened.rendezvous);
  EXPECT_TRUE(Tell(0, opened, "a").empty());
  const RendezvousOpened first{.rendezvous = {"10.0.0.3", 4000, "", 0}};
  EXPECT_TRUE(Tell(0, first, "a").empty()) << "the executor repeats the message";
  EXPECT_EQ(trial(0).live->rendezvous, opened.rendezvous);
  EndPart("b", Outcome::kFailed, "it broke");
  EndPart("a", Outcome::kKilled);
  EXPECT_EQ(trial(0).live->rendezvous, std::nullopt) << "the next attempt has another rendezvous";
}

TEST_F(Spanning, PartsThatLeaveAfterRankZeroWasToldToLeaveHaveNotFailed) {
  SweepSpec spec = SpanningSpec();
  spec.max_step = Step(1);
  spec.program.report_pattern = "(?P<score>.*)";
  Create(spec);
  Tell(0, TrialReported{.report = {.step = Step(1), .metrics = {{"score", 1.0}}, .waits = true}},
       "a");
  EXPECT_THAT(ShouldRun("b"), ElementsAre("s1/0.1"));
  EndPart("a", Outcome::kFinished);
  EXPECT_THAT(AttemptsToCancel("b"), ElementsAre("s1/0.1"))
      << "b does not know the verdict and would keep training";
  const auto events = EndPart("b", Outcome::kFailed, "its peer is gone");
  EXPECT_EQ(Find<AttemptEnded>(events)->outcome, Outcome::kFinished);
}

TEST_F(Spanning, PartsThatLeaveBeforeTheEndOfRankZeroIsKnownHaveNotFailed) {
  SweepSpec spec = SpanningSpec();
  spec.max_step = Step(1);
  Create(spec);
  Tell(0, TrialReported{.report = {.step = Step(1), .metrics = {{"score", 1.0}}, .waits = true}},
       "a");
  EndPart("b", Outcome::kFailed, "connection reset");
  const auto events = EndPart("a", Outcome::kFinished);
  EXPECT_EQ(Find<AttemptEnded>(events)->outcome, Outcome::kFinished);
}

TEST_F(Spanning, TheStopOfAnExecutorIsNotChargedAsARestart) {
  SweepSpec spec = SpanningSpec();
  spec.failure.max_restarts = 0;
  Create(spec);
  const AttemptEnded left{
      .outcome = Outcome::kFailed,
      .failure = {.kind = FailureKind::kLease, .message = "its executor was stopped"}};
  LosePeer("a");
  Tell(0, left, "b");
  EXPECT_EQ(trial(0).failures, 0);
  ASSERT_TRUE(trial(0).live) << "the trial is running again";
  Tell(0, left, "b");
  LosePeer("a");
  EXPECT_EQ(trial(0).failures, 0);
  EXPECT_TRUE(trial(0).live);
}

TEST_F(Spanning, RankZeroResumesOnTheExecutorWithTheCheckpoint) {
  JoinSpanning("a", {.cpus = 2}, "folder-a");
  JoinSpanning("b", {.cpus = 2}, "folder-b");
  Create(SpanningSpec());
  ASSERT_EQ(trial(0).live->ranks[0].executor, "a");
  Tell(0, CheckpointSaved{.checkpoint = {Step(1), "/c/1", "d"}, .bytes = 1}, "a");
  Tell(0, TrialReported{.report = {.step = Step(1), .metrics = {{"score", 0.5}}}}, "a");
  Tell(0, CheckpointSaved{.checkpoint = {Step(2), "/c/2", "d"}, .bytes = 1}, "a");
  EndPart("b", Outcome::kFailed, "it broke");
  Tell(0, TrialReported{.report = {.step = Step(2), .metrics = {{"score", 0.5}}}}, "a");
  EndPart("a", Outcome::kKilled);
  ASSERT_TRUE(trial(0).live);
  EXPECT_EQ(trial(0).live->resume->step, Step(1)) << "reports after the failure are ignored";
  EXPECT_EQ(trial(0).live->ranks[0].executor, "a");
  EXPECT_EQ(trial(0).live->ranks[2].executor, "b");
}

TEST_F(Spanning, ALostExecutorKeepsOtherSlotsAndIsNotCharged) {
  Create(SpanningSpec());
  EXPECT_EQ(Find<TrialRequeued>(Lose("b")), nullptr) << "the other part still runs on a";
  EXPECT_EQ(FreeCpus("a"), 0);
  EXPECT_THAT(AttemptsToCancel("a"), ElementsAre("s1/0.1"));
  const auto events = EndPart("a", Outcome::kFailed, "a rank has lost its peers");
  EXPECT_EQ(Find<AttemptEnded>(events)->outcome, Outcome::kLost);
  EXPECT_THAT(Find<TrialRequeued>(events)->reason, testing::Mentions("executor b", "silent"));
  EXPECT_EQ(trial(0).failures, 0);
}

TEST_F(Spanning, AFailedGangReportsNothingNew) {
  Create(SpanningSpec());
  Tell(0, TrialReported{.report = {Step(1), {{"score", 1.0}}}}, "a");
  EXPECT_EQ(trial(0).last_step, Step(1));
  EndPart("b", Outcome::kFailed, "it broke");
  EXPECT_TRUE(Tell(0, TrialReported{.report = {Step(2), {{"score", 1.0}}}}, "a").empty());
}

TEST_F(Spanning, OnlyTheExecutorOfRankZeroSpeaksForTheGang) {
  Create(SpanningSpec());
  EXPECT_TRUE(Tell(0, AttemptStarted{}, "b").empty());
  EXPECT_TRUE(Tell(0, TrialReported{.report = {Step(1), {{"score", 1.0}}}}, "b").empty());
  EXPECT_TRUE(Tell(0, AttemptEnded{.outcome = Outcome::kFinished}, "box").empty());
  EXPECT_TRUE(Tell(0, AttemptEnded{.outcome = Outcome::kFinished}).empty())
      << "the message names no executor";
  EXPECT_FALSE(Tell(0, AttemptStarted{}, "a").empty());
}

TEST_F(Spanning, AKilledGangEndsWithItsLastPart) {
  Create(SpanningSpec());
  Do(KillTrial{Id(0)});
  EXPECT_THAT(AttemptsToCancel("a"), ElementsAre("s1/0.1"));
  EXPECT_THAT(AttemptsToCancel("b"), ElementsAre("s1/0.1"));
  EndPart("a", Outcome::kKilled);
  EXPECT_THAT(AttemptsToCancel("a"), ElementsAre());
  EXPECT_EQ(FreeCpus("a"), 2);
  EXPECT_NE(brain.state().Find(id()), nullptr);
  EndPart("b", Outcome::kKilled);
  EXPECT_EQ(DescribeEnding().state, SweepState::kCompleted);
}

TEST_F(Spanning, EnoughExecutorsAreReservedForASpanningGang) {
  SweepSpec small = testing::ToySpec();
  small.gang = {.workers = 1, .per_worker = {.cpus = 1}};
  small.stop.max_trials = 0;
  const SweepId ones = Create(small);
  EXPECT_EQ(sweep(ones).live.size(), 6u);
  const SweepId wide = Create(SpanningSpec());
  const auto free_one = [&](const std::string& executor) {
    for (TrialNumber number : sweep(ones).live) {
      const Attempt live = *sweep(ones).Find(number)->live;
      if (live.ranks[0].executor == executor)
        return Do(RecordFact{live.epoch, AttemptEnded{live.id, Outcome::kFinished, {}}, executor});
    }
    return std::vector<Event>();
  };
  const auto events = free_one("a");
  ASSERT_NE(Find<SlotsReserved>(events), nullptr);
  EXPECT_EQ(Find<SlotsReserved>(events)->parts, (std::vector<GangPart>{{"a", 2}, {"b", 2}}));
  EXPECT_THAT(brain.Waiting(sweep(wide)), testing::Mentions("a, b"));
  free_one("box");
  EXPECT_EQ(sweep(ones).live.size(), 5u) << "slots of box stay in use";
  free_one("a");
  free_one("b");
  EXPECT_EQ(sweep(wide).live.size(), 0u);
  free_one("b");
  EXPECT_EQ(sweep(wide).live.size(), 1u);
  EXPECT_FALSE(brain.state().reservation);
}

TEST_F(Spanning, ASnapshotKeepsEndedParts) {
  Create(SpanningSpec());
  EndPart("b", Outcome::kFailed, "it broke");
  const std::string saved = SaveState(brain.state());
  Brain loaded(algorithms, [](const std::string&) { return true; });
  ASSERT_TRUE(loaded.Load(saved).ok());
  EXPECT_EQ(SaveState(loaded.state()), saved);
  Brain replayed(algorithms, [](const std::string&) { return true; });
  for (const Event& event : log) replayed.Replay(event);
  EXPECT_EQ(SaveState(replayed.state()), saved);
}

}  // namespace
}  // namespace attune
