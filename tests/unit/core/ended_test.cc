#include "core/state/ended.h"
#include "base/result.h"

#include "core/state/snapshot.h"
#include "tests/support/mentions.h"
#include "tests/unit/core/brain_harness.h"

namespace attune {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class EndedSweeps : public BrainTest {
 protected:
  EndedSweeps() {
    spec_.stop.max_trials = 1;
    Do(CreateSweep{spec_, "text", "key"});
    Save(0, 2);
    Report(0, 2, 0.9);
    Finish(0);
  }

  const ExtendSweep extend_{.sweep = SweepId(1), .max_trials = 2};
  SweepSpec spec_ = testing::ToySpec();
};

TEST_F(EndedSweeps, DataLeavesTheStateAndIsLoadedForCommandsThatNeedIt) {
  const std::vector<EndedSweepData> parts = AllEndedSweepData(brain.state());
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_FALSE(parts[0].bytes.empty());
  brain.ReleaseEndedSweeps();
  EXPECT_THAT(AllEndedSweepData(brain.state()).at(0).bytes, IsEmpty());
  EXPECT_FALSE(MissingData(brain.state(), CreateSweep{spec_, "text", "another"}));
  const auto lacking = MissingData(brain.state(), extend_);
  ASSERT_TRUE(lacking);
  EXPECT_TRUE(lacking->Names(parts[0]));
  ASSERT_TRUE(brain.RestoreEndedSweep(parts[0]).ok());
  EXPECT_FALSE(MissingData(brain.state(), extend_));

  Do(extend_);
  EXPECT_EQ(sweep().created, 2);
}

TEST_F(EndedSweeps, AReplayFromASnapshotLoadsTheDataOfAReopenedSweep) {
  const std::string snapshot = SaveState(brain.state());
  const std::vector<EndedSweepData> parts = AllEndedSweepData(brain.state());
  const size_t since = log.size();
  Do(extend_);
  Brain next(algorithms, [](const std::string&) { return true; });
  ASSERT_TRUE(next.Load(snapshot).ok());
  int asked = 0;
  for (size_t i = since; i < log.size(); ++i) {
    if (const auto lacking = MissingData(next.state(), log[i])) {
      ++asked;
      ASSERT_TRUE(lacking->Names(parts.at(0)));
      ASSERT_TRUE(next.RestoreEndedSweep(parts.at(0)).ok());
    }
    next.Replay(log[i]);
  }
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(SaveState(next.state()), SaveState(brain.state()));
}

TEST_F(EndedSweeps, DataWithAnotherHashIsRefused) {
  EndedSweepData part = AllEndedSweepData(brain.state()).at(0);
  brain.ReleaseEndedSweeps();
  part.bytes.back() ^= 1;
  const Status damaged = brain.RestoreEndedSweep(part);
  ASSERT_FALSE(damaged.ok());
  EXPECT_EQ(damaged.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(damaged.error().message, testing::Mentions("s1"));
  EXPECT_TRUE(MissingData(brain.state(), extend_));
}

TEST_F(EndedSweeps, APinAfterTheEndNeedsNoData) {
  const PinCheckpoint pin{{{SweepId(1), TrialNumber(0)}, 1, Step(2)}, true};
  brain.ReleaseEndedSweeps();
  EXPECT_FALSE(MissingData(brain.state(), pin));
  Do(pin);
  EXPECT_EQ(AllEndedSweepData(brain.state()).size(), 1u);
}

TEST_F(EndedSweeps, NotesAndTagsAfterTheEndNeedNoData) {
  const AnnotateSweep annotate{SweepId(1), {.note = "a note"}};
  brain.ReleaseEndedSweeps();
  EXPECT_FALSE(MissingData(brain.state(), annotate));
  EXPECT_EQ(Find<SweepAnnotated>(Do(annotate))->annotation, annotate.annotation);
  const Annotation tags{.tags = {{"best"}}};
  EXPECT_EQ(Find<TrialAnnotated>(Do(AnnotateTrial{Id(0), tags}))->annotation, tags);
  EXPECT_THAT(Do(AnnotateSweep{SweepId(1), {}}), IsEmpty()) << "it changes nothing";
  EXPECT_EQ(RefusalOf(AnnotateSweep{SweepId(9), tags}).code, ErrorCode::kNotFound);
}

TEST_F(EndedSweeps, AStoredCopyAfterTheEndNeedsNoData) {
  const CheckpointId checkpoint{{SweepId(1), TrialNumber(0)}, 1, Step(2)};
  brain.ReleaseEndedSweeps();
  EXPECT_NE(Find<CheckpointStored>(Do(RecordStored{checkpoint, "", "s3://bucket"})), nullptr);
  EXPECT_EQ(brain.state().ended.at(SweepId(1)).stored.at(checkpoint), "s3://bucket");
}

TEST_F(EndedSweeps, ADropAfterTheEndChecksThePinsThatRemain) {
  spec_.checkpoint.keep_last = 3;
  Do(CreateSweep{spec_, "text", "another"});
  Save(0, 1);
  Report(0, 1, 0.1);
  Save(0, 2);
  Report(0, 2, 0.9);
  const auto kept = trial(0).checkpoints;
  ASSERT_EQ(kept.size(), 2u);
  const TrialId id = trial(0).id;
  Finish(0);
  const std::vector<EndedSweepData> parts = AllEndedSweepData(brain.state());
  ASSERT_EQ(parts.size(), 2u);

  TrialRecord record = RecordOf(0, Step(2), kept);
  record.id = id;
  const DropCheckpoint best{{id, 1, Step(2)}, record};
  brain.ReleaseEndedSweeps();
  ASSERT_TRUE(MissingData(brain.state(), best));
  ASSERT_TRUE(brain.RestoreEndedSweep(parts[1]).ok());
  EXPECT_EQ(RefusalOf(best).code, ErrorCode::kConflict);
  EXPECT_THAT(RefusalOf(best).message, testing::Mentions("best"));
  const DropCheckpoint first{{id, 1, Step(1)}, record};
  ASSERT_NE(Find<CheckpointDropped>(Do(first)), nullptr);
  EXPECT_TRUE(brain.state().removals.at("box").contains(first.checkpoint));
  EXPECT_EQ(RefusalOf(first).code, ErrorCode::kConflict) << "the record is outdated";

  Brain loaded(algorithms, [](const std::string&) { return true; });
  const std::string snapshot = SaveState(brain.state());
  ASSERT_TRUE(loaded.Load(snapshot).ok());
  EXPECT_EQ(SaveState(loaded.state()), snapshot);
  EXPECT_THAT(loaded.state().ended.at(id.sweep).dropped, Contains(first.checkpoint));
}

// The sweep s1 has ended with a checkpoint on `box`, and another sweep runs.
class DeletedSweeps : public EndedSweeps {
 protected:
  DeletedSweeps() { Create(testing::ToySpec()); }

  DeleteSweep DeleteFirst() const { return {SweepId(1), brain.state().last_seq}; }
  std::set<SweepId> Removals(const std::string& folder) const {
    const auto found = brain.state().sweep_removals.find(folder);
    return found != brain.state().sweep_removals.end() ? found->second : std::set<SweepId>();
  }
};

TEST_F(DeletedSweeps, EnvironmentsAreRecordedAfterTheEndAndNotAfterTheDeletion) {
  const RecordEnvironment record{SweepId(1), "box", "{}"};
  brain.ReleaseEndedSweeps();
  EXPECT_FALSE(MissingData(brain.state(), record));
  EXPECT_NE(Find<EnvironmentRecorded>(Do(record)), nullptr);
  Do(DeleteFirst());
  EXPECT_THAT(Do(record), IsEmpty());
}

TEST_F(DeletedSweeps, OnlyTheLogRemainsAndEveryFolderMustRemoveItsFiles) {
  JoinWithFolder("left", {.cpus = 1}, "shared");
  JoinWithFolder("right", {.cpus = 1}, "shared");
  Lose("left");
  Do(DeleteFirst());
  for (const std::string folder : {"box", "shared"})
    EXPECT_THAT(Removals(folder), ElementsAre(SweepId(1)));
  EXPECT_THAT(brain.state().ended, IsEmpty());
  EXPECT_THAT(brain.state().reopenable, IsEmpty());
  EXPECT_TRUE(brain.state().by_key.contains("key"))
      << "a late repetition of the request creates nothing";
  const auto snapshot = SaveState(brain.state());
  Brain loaded(algorithms, [](const std::string&) { return true; });
  ASSERT_TRUE(loaded.Load(snapshot).ok());
  EXPECT_EQ(SaveState(loaded.state()), snapshot);

  for (const Command& command :
       {Command(DeleteFirst()), Command(extend_), Command(KillSweep{SweepId(1)}),
        Command(PinCheckpoint{{{SweepId(1), TrialNumber(0)}, 1, Step(2)}, true})}) {
    EXPECT_EQ(RefusalOf(command).code, ErrorCode::kNotFound);
    EXPECT_THAT(RefusalOf(command).message, testing::Mentions("s1", "deleted"));
  }

  // Any executor with the folder may report the removal; only the first report counts.
  EXPECT_EQ(Do(RecordSweepRemoval{SweepId(1), "shared", "right"}).size(), 1u);
  EXPECT_THAT(Removals("shared"), IsEmpty());
  EXPECT_THAT(Do(RecordSweepRemoval{SweepId(1), "shared", "left"}), IsEmpty());
  EXPECT_THAT(Do(RecordSweepRemoval{SweepId(2), "box", "box"}), IsEmpty());
  EXPECT_THAT(Do(RecordSweepRemoval{SweepId(1), "nowhere", "nobody"}), IsEmpty());
  Do(RecordSweepRemoval{SweepId(1), "box", "box"});
  EXPECT_THAT(brain.state().sweep_removals, IsEmpty());
}

TEST_F(DeletedSweeps, OnlyAnEndedSweepWithoutLaterChangesCanBeDeleted) {
  EXPECT_THAT(RefusalOf(DeleteSweep{SweepId(2), brain.state().last_seq}).message,
              testing::Mentions("attune sweep kill s2"));
  const DeleteSweep stale = DeleteFirst();
  Do(PinCheckpoint{{{SweepId(1), TrialNumber(0)}, 1, Step(2)}, true});
  EXPECT_EQ(RefusalOf(stale).code, ErrorCode::kConflict);
  EXPECT_EQ(RefusalOf(DeleteSweep{SweepId(9), {}}).code, ErrorCode::kNotFound);
}

class DelayedDeletions : public DeletedSweeps {
 protected:
  DeleteSweep DeleteFirstLater() const { return {SweepId(1), brain.state().last_seq, Seconds(10)}; }
  bool IsDeleted() const { return brain.state().deleted.contains(SweepId(1)); }
};

TEST_F(DelayedDeletions, HappenWhenTheTimeHasCome) {
  const auto scheduled = Do(DeleteFirstLater());
  const Time at{now - 1 + 10'000'000};
  ASSERT_EQ(scheduled.size(), 1u);
  EXPECT_EQ(Find<SweepDeletionScheduled>(scheduled)->at, at);
  EXPECT_EQ(brain.Due(Time{now}), at);
  Wait(9.5);
  EXPECT_FALSE(IsDeleted());
  EXPECT_TRUE(brain.state().ended.contains(SweepId(1)));
  Wait(0.5);
  EXPECT_TRUE(IsDeleted());
  EXPECT_THAT(brain.state().deletions, IsEmpty());
}

TEST_F(DelayedDeletions, HappenAfterARestartThatTakesLonger) {
  Do(DeleteFirstLater());
  Brain loaded(algorithms, [](const std::string&) { return true; });
  ASSERT_TRUE(loaded.Load(SaveState(brain.state())).ok());
  EXPECT_TRUE(loaded.state().deletions.contains(SweepId(1)));
  const auto events = loaded.Advance(Time{now + 60'000'000});
  EXPECT_NE(Find<SweepDeleted>(events), nullptr);
}

TEST_F(DelayedDeletions, KeepTheNameOfTheRequester) {
  ASSERT_TRUE(brain.Execute(DeleteFirstLater(), Tick(), "ada").ok());
  const auto events = brain.Advance(Time{now + 10'000'000});
  ASSERT_NE(Find<SweepDeleted>(events), nullptr);
  EXPECT_EQ(Find<SweepDeleted>(events)->requester, "ada");
}

TEST_F(DelayedDeletions, AreScheduledOnceAndCanBeDoneNow) {
  Do(DeleteFirstLater());
  Wait(5);
  EXPECT_THAT(Do(DeleteFirstLater()), IsEmpty()) << "the time stays";
  EXPECT_NE(Find<SweepDeleted>(Do(DeleteFirst())), nullptr);
  EXPECT_TRUE(IsDeleted());
}

TEST_F(DelayedDeletions, CanBeUndoneUntilTheyHappen) {
  EXPECT_THAT(Do(UndeleteSweep{SweepId(1)}), IsEmpty()) << "nothing is scheduled";
  Do(DeleteFirstLater());
  EXPECT_EQ(Do(UndeleteSweep{SweepId(1)}).size(), 1u);
  EXPECT_THAT(Do(UndeleteSweep{SweepId(1)}), IsEmpty());
  Wait(20);
  EXPECT_FALSE(IsDeleted());
  Do(DeleteFirst());
  EXPECT_EQ(RefusalOf(UndeleteSweep{SweepId(1)}).code, ErrorCode::kNotFound);
  EXPECT_THAT(RefusalOf(UndeleteSweep{SweepId(1)}).message,
              testing::Mentions("s1", "already deleted"));
  EXPECT_EQ(RefusalOf(UndeleteSweep{SweepId(9)}).code, ErrorCode::kNotFound);
}

TEST_F(DelayedDeletions, LetNothingChangeTheSweep) {
  Do(DeleteFirstLater());
  for (const Command& command :
       {Command(extend_), Command(AnnotateSweep{SweepId(1), {.note = "late"}}),
        Command(AnnotateTrial{{SweepId(1), TrialNumber(0)}, {.note = "late"}}),
        Command(PinCheckpoint{{{SweepId(1), TrialNumber(0)}, 1, Step(2)}, true})}) {
    EXPECT_EQ(RefusalOf(command).code, ErrorCode::kConflict);
    EXPECT_THAT(RefusalOf(command).message, testing::Mentions("attune sweep undelete s1"));
  }
  Do(UndeleteSweep{SweepId(1)});
  EXPECT_NE(Find<SweepReopened>(Do(extend_)), nullptr);
}

TEST_F(DelayedDeletions, ARunningSweepIsRefused) {
  EXPECT_EQ(RefusalOf(DeleteSweep{SweepId(2), brain.state().last_seq, Seconds(10)}).code,
            ErrorCode::kConflict);
}

TEST_F(DeletedSweeps, CheckpointsAreRemovedWithTheOtherFiles) {
  const CheckpointId first{{SweepId(1), TrialNumber(0)}, 1, Step(1)};
  log.push_back({.seq = EventSeq(brain.state().last_seq.value + 1),
                 .time = brain.state().last_time,
                 .fact = CheckpointDropped{first, "box", "/data/step-1", ""}});
  brain.Replay(log.back());
  ASSERT_TRUE(brain.state().removals.at("box").contains(first));
  Do(DeleteFirst());
  EXPECT_THAT(brain.state().removals, IsEmpty());
  EXPECT_THAT(Do(RecordRemoval{first}), IsEmpty());
}

TEST_F(DeletedSweeps, AForgottenExecutorIsNoLongerAwaited) {
  JoinWithFolder("left", {.cpus = 1}, "own");
  JoinWithFolder("right", {.cpus = 1}, "shared");
  JoinWithFolder("other", {.cpus = 1}, "shared");
  Do(DeleteFirst());
  Lose("left");
  Lose("right");
  std::vector<std::string> reasons;
  for (const Event& event : Wait(8 * 24 * 3600)) {
    if (const auto* forgotten = std::get_if<ExecutorForgotten>(&event.fact))
      reasons.push_back(forgotten->reason);
  }
  EXPECT_THAT(reasons, ElementsAre(testing::Mentions("1 deleted sweep"),
                                   ::testing::Not(HasSubstr("deleted"))))
      << "`other` has the same folder as `right`";
  EXPECT_THAT(Removals("own"), IsEmpty());
  EXPECT_THAT(Removals("shared"), ElementsAre(SweepId(1)));
}

TEST_F(DeletedSweeps, AnExecutorThatJoinsWithItsFilesMustRemoveThem) {
  Do(DeleteFirst());
  Do(RecordSweepRemoval{SweepId(1), "box", "box"});
  const auto joined = Do(JoinExecutor{.name = "back",
                                      .instance = "a",
                                      .resources = {.cpus = 1},
                                      .folder = "mounted again",
                                      .sweeps = {{SweepId(1), LogIdentity(0)},
                                                 {SweepId(2), LogIdentity(0)},
                                                 {SweepId(9), LogIdentity(0)}}});
  EXPECT_THAT(Find<ExecutorJoined>(joined)->deleted, ElementsAre(SweepId(1)));
  EXPECT_THAT(Removals("mounted again"), ElementsAre(SweepId(1)));
}

TEST_F(EndedSweeps, TheOldestSweepsAreForgottenWithTheirKeys) {
  for (size_t i = 0; i < kReopenableSweeps; ++i) {
    Do(CreateSweep{spec_, "text", "key " + std::to_string(i)});
    Finish(0);
  }
  const State& state = brain.state();
  EXPECT_EQ(state.ended.size(), kReopenableSweeps);
  EXPECT_EQ(state.by_key.size(), kReopenableSweeps);
  EXPECT_FALSE(state.by_key.contains("key"));
  EXPECT_EQ(RefusalOf(extend_).code, ErrorCode::kConflict);
  EXPECT_EQ(RefusalOf(StopSweep{SweepId(1)}).code, ErrorCode::kConflict);
  EXPECT_EQ(RefusalOf(StopSweep{SweepId(1000)}).code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace attune
