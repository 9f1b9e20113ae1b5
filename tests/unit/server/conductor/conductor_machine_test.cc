#include "server/conductor/conductor_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

#include "base/result.h"
#include "tests/support/memory_store.h"
#include "tests/support/toy_algorithms.h"

namespace attune::server {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

const Error kFull{ErrorCode::kStorageFull, "the disk is full"};

// A store that fails, or in which the process dies, on request of the test.
class FrailStore final : public EventStore {
 public:
  Status Append(std::span<const Event> batch) override {
    if (dies) throw std::runtime_error("the process died");
    return kept.Append(batch);
  }
  Status AppendFromReserve(std::span<const Event> batch) override {
    return kept.AppendFromReserve(batch);
  }
  EventSeq LastSeq() const override { return kept.LastSeq(); }
  Status Read(EventSeq after, const std::function<void(const Event&)>& visit) const override {
    if (unreadable) return Error{ErrorCode::kCorrupt, "the log cannot be read"};
    return kept.Read(after, visit);
  }
  Status SaveSnapshot(const Snapshot& snapshot) override { return kept.SaveSnapshot(snapshot); }
  Result<std::optional<Snapshot>> ReadSnapshot(EventSeq at_most) const override {
    return kept.ReadSnapshot(at_most);
  }
  Result<std::string> ReadEnded(const EndedSweepData& part) const override {
    return kept.ReadEnded(part);
  }
  Status Probe() override {
    ++probes;
    return kept.Probe();
  }

  attune::testing::MemoryStore kept;
  bool dies = false;
  bool unreadable = false;
  int probes = 0;
};

class Diary final : public Listener {
 public:
  void OnStarted(const Brain&) override { lines.push_back("started"); }
  void OnState(EventSeq durable, const Status& writable) override {
    lines.push_back("durable " + std::to_string(durable.value) +
                    (writable.ok() ? "" : ", refuses"));
  }
  void OnDurable(std::span<const Event> events, const Brain&) override {
    lines.push_back("published " + std::to_string(events.size()));
  }
  std::vector<std::string> lines;
};

class ConductorMachineTest : public ::testing::Test {
 protected:
  ConductorMachineTest() {
    machine.Subscribe(&diary);
    EXPECT_TRUE(machine.Start(Time{0}, {}).ok());
  }

  Submission MakeSubmission(Command command) {
    Submission submission{.done = [this](const Result<std::span<const Event>>& result) {
      diary.lines.push_back(result.ok() ? "answered " + std::to_string(result->size())
                                        : result.error().message);
    }};
    submission.commands.push_back(std::move(command));
    return submission;
  }
  static CreateSweep Create() { return {attune::testing::ToySpec(), "text", ""}; }
  static JoinExecutor Join(int cpus) { return {"box", "a", "127.0.0.1", {.cpus = cpus}}; }

  Status Step(int64_t at_us, Submission submission) {
    std::vector<Submission> batch;
    batch.push_back(std::move(submission));
    return machine.Step(std::move(batch), Time{at_us});
  }
  Status Step(int64_t at_us) { return machine.Step({}, Time{at_us}); }

  FrailStore store;
  Diary diary;
  bool may_place = true;
  const Algorithms algorithms = attune::testing::ToyAlgorithms();
  ConductorMachine machine{{.make_decider =
                                [this] {
                                  return MakeBrainDecider(
                                      algorithms, [this](const auto&) { return Reach(may_place); });
                                },
                            .store = &store}};
};

TEST_F(ConductorMachineTest, AppendsThenAnswersThenPublishes) {
  diary.lines.clear();
  ASSERT_TRUE(Step(1, MakeSubmission(Create())).ok());
  EXPECT_THAT(diary.lines, ::testing::ElementsAre("durable 1", "answered 1", "published 1"));
}

TEST_F(ConductorMachineTest, ARefusedFactLeavesTheOthersOfItsSubmissionAlone) {
  bool stored = false;
  std::vector<Command> facts;
  facts.push_back(StopSweep{SweepId{7}});  // no such sweep
  facts.push_back(Join(1));
  ASSERT_TRUE(
      Step(1, {.commands = std::move(facts), .stored = [&](const Status& s) { stored = s.ok(); }})
          .ok());
  EXPECT_TRUE(stored);
  EXPECT_THAT(store.kept.events, SizeIs(1));
}

TEST_F(ConductorMachineTest, ARefusedCommandIsAnsweredAloneOfItsBatch) {
  std::vector<Submission> batch;
  batch.push_back(MakeSubmission(Create()));
  batch.push_back(MakeSubmission(StopSweep{SweepId{7}}));
  batch.push_back(MakeSubmission(Create()));
  ASSERT_TRUE(machine.Step(std::move(batch), Time{1}).ok());
  EXPECT_THAT(diary.lines, ::testing::Contains("answered 1").Times(2));
  EXPECT_THAT(diary.lines, ::testing::Contains(HasSubstr("sweep s7")));
  EXPECT_THAT(store.kept.events, SizeIs(2));
  EXPECT_EQ(store.kept.commits, 1);
}

TEST_F(ConductorMachineTest, ACommandNeedsAnEventOfTheOneBefore) {
  diary.lines.clear();
  Submission all = MakeSubmission(Create());
  all.commands.push_back(PauseSweep{SweepId(1)});
  all.commands.push_back(PauseSweep{SweepId(1)});  // already paused
  all.commands.push_back(Join(1));
  ASSERT_TRUE(Step(1, std::move(all)).ok());
  Submission refused = MakeSubmission(StopSweep{SweepId{7}});
  refused.commands.push_back(Join(1));
  ASSERT_TRUE(Step(2, std::move(refused)).ok());
  EXPECT_THAT(diary.lines, ::testing::ElementsAre("durable 2", "answered 1", "answered 1",
                                                  "answered 0", "answered 0", "published 2",
                                                  HasSubstr("sweep s7"), "answered 0"));
  EXPECT_EQ(store.kept.commits, 1);
}

TEST_F(ConductorMachineTest, ConsequencesPrecedeTheNextCommand) {
  ASSERT_TRUE(Step(1, MakeSubmission(Create())).ok());
  diary.lines.clear();
  Submission all = MakeSubmission(KillSweep{SweepId(1)});  // the sweep has ended before the command
  all.commands.push_back(PauseSweep{SweepId(1)});
  ASSERT_TRUE(Step(2, std::move(all)).ok());
  EXPECT_THAT(diary.lines,
              ::testing::Contains(::testing::AllOf(HasSubstr("sweep s1 "), HasSubstr("killed"))));
}

TEST_F(ConductorMachineTest, ContinuesWaitingWorkRightAfterAStart) {
  EXPECT_EQ(machine.NextStep(Time{5}), Time{5});
  ASSERT_TRUE(Step(5).ok());
  EXPECT_EQ(machine.NextStep(Time{5}), std::nullopt);
}

TEST_F(ConductorMachineTest, NoticesWhatBecomesDueBetweenSteps) {
  ASSERT_TRUE(Step(1, MakeSubmission(Join(2))).ok());
  CreateSweep create = Create();
  create.spec->stop.max_trials = 1;
  ASSERT_TRUE(Step(2, MakeSubmission(create)).ok());
  const Trial& trial = *machine.brain().state().Find(SweepId(1))->Find(TrialNumber(0));
  AttemptEnded failed{.attempt = trial.live->id, .outcome = Outcome::kFailed};
  failed.failure = {.kind = FailureKind::kHost, .message = "no space"};
  std::vector<Command> facts;
  facts.push_back(RecordFact{.epoch = trial.live->epoch, .fact = failed, .executor = "box"});
  ASSERT_TRUE(Step(10, {.commands = std::move(facts)}).ok());
  const Time due{10 + 1'000'000};  // after the backoff of a first attempt
  ASSERT_EQ(trial.not_before, due);
  EXPECT_EQ(machine.NextStep(Time{20}), due);
  EXPECT_EQ(machine.NextStep(Time{due.us + 5}), due);
  ASSERT_TRUE(Step(due.us + 5).ok());
  EXPECT_TRUE(trial.live);
}

TEST_F(ConductorMachineTest, ProbesAStalledStoreAtItsTimeAndNotBefore) {
  store.kept.full = kFull;
  ASSERT_TRUE(Step(0, MakeSubmission(Create())).ok());
  EXPECT_EQ(diary.lines.back(), "the disk is full");
  EXPECT_TRUE(machine.brain().state().sweeps.empty());
  EXPECT_EQ(machine.NextStep(Time{1}), Time{kProbeIntervalUs});

  ASSERT_TRUE(Step(kProbeIntervalUs - 1, MakeSubmission(Create())).ok());
  EXPECT_EQ(store.probes, 0);
  EXPECT_EQ(diary.lines.back(), "the disk is full");
  ASSERT_TRUE(Step(kProbeIntervalUs).ok());
  EXPECT_EQ(store.probes, 1);
  EXPECT_EQ(machine.NextStep(Time{kProbeIntervalUs}), Time{2 * kProbeIntervalUs});

  store.kept.full.reset();
  ASSERT_TRUE(Step(2 * kProbeIntervalUs, MakeSubmission(Create())).ok());
  EXPECT_THAT(store.kept.events, SizeIs(1));
}

class FullStore : public ConductorMachineTest {
 protected:
  // A sweep whose two trials run on the box.
  FullStore() {
    EXPECT_TRUE(Step(1, MakeSubmission(Join(2))).ok());
    EXPECT_TRUE(Step(2, MakeSubmission(Create())).ok());
    store.kept.full = kFull;
    store.kept.reserve = 100;
    diary.lines.clear();
  }

  const Sweep& sweep() const { return *machine.brain().state().Find(SweepId(1)); }
  const Trial& trial(uint32_t number) const { return *sweep().Find(TrialNumber(number)); }

  // Makes a fact that the executor sends about an attempt of a trial.
  RecordFact FactOf(uint32_t number, AttemptEnded ended) const {
    ended.attempt = trial(number).live->id;
    return {.epoch = trial(number).live->epoch, .fact = ended, .executor = "box"};
  }
  RecordFact Report(uint32_t number) const {
    return {.epoch = trial(number).live->epoch,
            .fact = TrialReported{trial(number).live->id, {attune::Step(1), {{"score", 0.5}}}},
            .executor = "box"};
  }
  // Whether the facts were stored.
  bool Record(std::vector<Command> facts, bool ends_only = false) {
    bool stored = true;
    Submission submission{.commands = std::move(facts), .ends_only = ends_only};
    if (!ends_only) submission.stored = [&](const Status& status) { stored = status.ok(); };
    EXPECT_TRUE(Step(10, std::move(submission)).ok());
    return stored;
  }
};

TEST_F(FullStore, StoresOnlyAKillAndTheEndsOfItsGangs) {
  ASSERT_TRUE(Step(3, MakeSubmission(KillSweep{SweepId(1)})).ok());
  EXPECT_THAT(diary.lines, ::testing::Contains(::testing::StartsWith("answered")));
  EXPECT_TRUE(Record({FactOf(0, {.outcome = Outcome::kKilled})}));
  ASSERT_TRUE(Step(11, MakeSubmission(Create())).ok());
  EXPECT_EQ(diary.lines.back(), "the disk is full");
  EXPECT_TRUE(Record({FactOf(1, {.outcome = Outcome::kKilled})}));
  EXPECT_TRUE(std::holds_alternative<SweepEnded>(store.kept.events.back().fact));
  EXPECT_EQ(machine.brain().state().last_seq.value, store.kept.events.size());
}

TEST_F(FullStore, StartsNothingInPlaceOfWhatItKills) {
  ASSERT_TRUE(Step(3, MakeSubmission(KillTrial{{SweepId(1), TrialNumber(0)}})).ok());
  may_place = false;  // sessions report this while the store refuses
  EXPECT_TRUE(Record({FactOf(0, {.outcome = Outcome::kKilled})}));
  EXPECT_EQ(sweep().live.size(), 1u);
  store.kept.full.reset();
  may_place = true;
  ASSERT_TRUE(Step(kProbeIntervalUs + 100).ok());
  EXPECT_EQ(sweep().live.size(), 2u);
}

TEST_F(FullStore, RequestsFactsAgainThatItCannotStore) {
  EXPECT_FALSE(Record({Report(0)}));
  EXPECT_FALSE(Record({Report(0), FactOf(0, {.outcome = Outcome::kFinished})}))
      << "an end must not be stored before its report";
  EXPECT_TRUE(trial(0).live);
}

TEST_F(FullStore, TakesTheEndOfAKilledGangWhoseReportsWereDropped) {
  ASSERT_TRUE(Step(3, MakeSubmission(KillTrial{{SweepId(1), TrialNumber(0)}})).ok());
  const RecordFact killed = FactOf(0, {.outcome = Outcome::kKilled});
  const RecordFact finished = FactOf(1, {.outcome = Outcome::kFinished});
  Record({finished, killed}, /*ends_only=*/true);
  EXPECT_FALSE(sweep().live.contains(TrialNumber(0)));
  EXPECT_TRUE(sweep().live.contains(TrialNumber(1)));
  store.kept.full.reset();
  Record({finished}, /*ends_only=*/true);
  EXPECT_TRUE(sweep().live.contains(TrialNumber(1))) << "also after the store has space again";
}

TEST_F(FullStore, StoresNothingOnceItsReserveIsUsedUp) {
  store.kept.reserve = 0;
  ASSERT_TRUE(Step(3, MakeSubmission(KillSweep{SweepId(1)})).ok());
  EXPECT_EQ(diary.lines.back(), "the disk is full");
  EXPECT_EQ(sweep().state, SweepState::kRunning);
  store.kept.full.reset();
  ASSERT_TRUE(Step(kProbeIntervalUs + 100, MakeSubmission(KillSweep{SweepId(1)})).ok());
  EXPECT_EQ(sweep().state, SweepState::kRunning) << "its gangs are still running";
  EXPECT_TRUE(sweep().stopping_as);
}

TEST_F(ConductorMachineTest, ListenersLearnWhenTheStoreRefusesAndRecovers) {
  store.kept.full = kFull;
  ASSERT_TRUE(Step(0, MakeSubmission(Create())).ok());
  store.kept.full.reset();
  ASSERT_TRUE(Step(kProbeIntervalUs).ok());
  EXPECT_THAT(diary.lines, ::testing::ElementsAre("durable 0", "started", "durable 0, refuses",
                                                  "the disk is full", "durable 0"));
}

TEST_F(ConductorMachineTest, ShowsOnlyDurableStateWhileTheStoreRefuses) {
  store.kept.full = kFull;
  Submission create = MakeSubmission(Create());
  size_t seen = 1;
  create.look = [&](const Brain& brain) { seen = brain.state().sweeps.size(); };
  ASSERT_TRUE(Step(0, std::move(create)).ok());
  EXPECT_EQ(seen, 0u);
}

TEST_F(ConductorMachineTest, EndsTheProcessIfTheStoreCanNeitherBeWrittenNorRead) {
  store.kept.full = kFull;
  store.unreadable = true;
  diary.lines.clear();
  const Status ended = Step(0, MakeSubmission(Create()));
  ASSERT_FALSE(ended.ok());
  EXPECT_THAT(ended.error().message, HasSubstr("read"));
  EXPECT_TRUE(diary.lines.empty());
}

TEST_F(ConductorMachineTest, EndsTheProcessIfTheStateOfTheDiskIsUnknown) {
  store.kept.full = Error{ErrorCode::kUnsynced, "the disk did not say"};
  diary.lines.clear();
  EXPECT_FALSE(Step(0, MakeSubmission(Create())).ok());
  EXPECT_TRUE(diary.lines.empty());
}

TEST_F(ConductorMachineTest, AnswersNobodyIfTheProcessDiesInItsAppend) {
  store.dies = true;
  diary.lines.clear();
  EXPECT_THROW(static_cast<void>(Step(0, MakeSubmission(Create()))), std::runtime_error);
  EXPECT_TRUE(diary.lines.empty());
}

TEST_F(ConductorMachineTest, WritesASnapshotAfterEnoughEvents) {
  ConductorMachine small(
      {.make_decider =
           [this] { return MakeBrainDecider(algorithms, [](const auto&) { return true; }); },
       .store = &store,
       .snapshot_events = 2});
  ASSERT_TRUE(small.Start(Time{0}, {}).ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(store.kept.snapshots.empty());
    std::vector<Submission> batch;
    batch.push_back(MakeSubmission(Create()));
    ASSERT_TRUE(small.Step(std::move(batch), Time{i}).ok());
  }
  EXPECT_THAT(store.kept.snapshots, SizeIs(1));
}

TEST(Queue, NeverSplitsASubmission) {
  Queue queue;
  const auto push = [&](size_t commands) {
    Submission submission;
    for (size_t i = 0; i < commands; ++i) submission.commands.push_back(KillSweep{});
    queue.Push(std::move(submission));
  };
  push(kBatchCommands - 1);
  push(2);
  push(1);
  EXPECT_THAT(queue.TakeBatch(), SizeIs(2));
  EXPECT_THAT(queue.TakeBatch(), SizeIs(1));
  EXPECT_TRUE(queue.empty());
}

TEST(Queue, IsFullWhenTooManyCommandsWait) {
  Queue queue;
  for (size_t i = 0; i < kQueueCommands; ++i) {
    EXPECT_FALSE(queue.full());
    Submission submission;
    submission.commands.push_back(KillSweep{});
    queue.Push(std::move(submission));
  }
  EXPECT_TRUE(queue.full());
  static_cast<void>(queue.TakeBatch());
  EXPECT_FALSE(queue.full());
}

// ---- The clock -------------------------------------------------------------------------------

constexpr int64_t kYearUs = int64_t{365} * 24 * 3600 * 1'000'000;

class ClockTest : public ConductorMachineTest {
 protected:
  // Starts another process with this time of its clock.
  std::unique_ptr<ConductorMachine> Restart(int64_t clock_us) {
    auto next = std::make_unique<ConductorMachine>(ConductorMachine::Options{
        .make_decider =
            [this] { return MakeBrainDecider(algorithms, [](const auto&) { return true; }); },
        .store = &store});
    EXPECT_TRUE(next->Start(Time{clock_us}, {}).ok());
    EXPECT_TRUE(next->Step({}, Time{clock_us}).ok());
    return next;
  }
  const Event& last() const { return store.kept.events.back(); }
  static Time DisplayedTime(const ConductorMachine& machine) {
    return ShownTime(machine.brain().state(), machine.brain().state().last_time);
  }
};

TEST_F(ClockTest, AStartThirtyYearsAheadDoesNotMoveTheLogsTime) {
  ASSERT_TRUE(Step(kYearUs, MakeSubmission(Create())).ok());
  const Time before = last().time;
  const auto ahead = Restart(31 * kYearUs);
  ASSERT_TRUE(std::holds_alternative<ClockAdjusted>(last().fact));
  EXPECT_EQ(last().time, before);
  EXPECT_EQ(DisplayedTime(*ahead), Time{31 * kYearUs});
  ASSERT_TRUE(ahead->Step({}, Time{31 * kYearUs + 70}).ok());

  const auto right = Restart(kYearUs + 5'000'000);
  EXPECT_EQ(last().time, before);
  EXPECT_EQ(DisplayedTime(*right), Time{kYearUs + 5'000'000});
  const EventSeq seq = last().seq;
  Restart(kYearUs + 6'000'000);
  EXPECT_EQ(last().seq, seq) << "the clock was not changed";
}

TEST_F(ClockTest, DelaysInTheLogKeepTheirLength) {
  SweepSpec spec = attune::testing::ToySpec();
  spec.stop.max_trials = 1;
  spec.failure.backoff = Seconds(100);
  ASSERT_TRUE(Step(kYearUs, MakeSubmission(Join(1))).ok());
  ASSERT_TRUE(Step(kYearUs, MakeSubmission(CreateSweep{spec, "text", ""})).ok());
  const AttemptEnded failed{.attempt = {{SweepId{1}, TrialNumber{0}}, 1},
                            .outcome = Outcome::kFailed,
                            .failure = {.kind = FailureKind::kExit, .rank = 0, .exit_code = 1}};
  ASSERT_TRUE(Step(kYearUs, MakeSubmission(RecordFact{Epoch{1}, failed})).ok());
  const auto due = machine.NextStep(Time{kYearUs});
  ASSERT_TRUE(due);
  const auto ahead = Restart(31 * kYearUs);
  const auto due_ahead = ahead->NextStep(Time{31 * kYearUs});
  ASSERT_TRUE(due_ahead);
  EXPECT_EQ(due_ahead->us - 31 * kYearUs, due->us - kYearUs);
}

TEST_F(ClockTest, TimeWithoutAServerCountsInTheLog) {
  ASSERT_TRUE(Step(kYearUs, MakeSubmission(Create())).ok());
  const int64_t hour_us = int64_t{3600} * 1'000'000;
  const EventSeq seq = last().seq;
  auto next = Restart(kYearUs + hour_us);
  EXPECT_EQ(last().seq, seq);
  std::vector<Submission> batch;
  batch.push_back(MakeSubmission(Create()));
  ASSERT_TRUE(next->Step(std::move(batch), Time{kYearUs + hour_us}).ok());
  EXPECT_EQ(last().time, Time{kYearUs + hour_us});
}

TEST_F(ClockTest, DisplayedTimesFollowAClockThatIsSet) {
  ASSERT_TRUE(Step(kYearUs, MakeSubmission(Create())).ok());
  machine.SetWallClockOffset(kClockToleranceUs / 2);
  ASSERT_TRUE(Step(kYearUs + 1, MakeSubmission(Create())).ok());
  EXPECT_EQ(machine.brain().state().clock_offset_us, 0)
      << "a small difference is not an adjustment";
  machine.SetWallClockOffset(-10 * kYearUs);
  ASSERT_TRUE(Step(kYearUs + 2, MakeSubmission(Create())).ok());
  EXPECT_EQ(DisplayedTime(machine), Time{-9 * kYearUs + 2});
  EXPECT_EQ(last().time, Time{kYearUs + 2});
}

TEST_F(ClockTest, AdjustmentWaitsWhileTheDiskIsFull) {
  ASSERT_TRUE(Step(kYearUs, MakeSubmission(Create())).ok());
  store.kept.full = kFull;
  auto ahead = Restart(31 * kYearUs);
  EXPECT_EQ(ahead->brain().state().clock_offset_us, 0);
  store.kept.full.reset();
  ASSERT_TRUE(ahead->Step({}, Time{31 * kYearUs + kProbeIntervalUs}).ok());
  EXPECT_EQ(ahead->brain().state().clock_offset_us, 30 * kYearUs);
}

}  // namespace
}  // namespace attune::server
