#include "server/conductor/conductor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "base/result.h"
#include "tests/support/memory_store.h"
#include "tests/support/toy_algorithms.h"

namespace attune::server {
namespace {

using ::testing::ElementsAre;

constexpr int kPatienceMs = 10'000;

class Recorder final : public Listener {
 public:
  void OnDurable(std::span<const Event> events, const Brain&) override {
    for (const Event& event : events) seen.push_back(event.seq);
  }
  std::vector<EventSeq> seen;
};

class ConductorTest : public ::testing::Test {
 protected:
  ConductorTest() {
    conductor.SetReachable([](const std::string&) { return true; });
    conductor.Subscribe(&recorder);
    EXPECT_TRUE(conductor.Start().ok());
  }

  Result<std::vector<Event>> Join() {
    return conductor.Execute(JoinExecutor{"box", "a", "127.0.0.1", {.cpus = 2}});
  }
  Result<std::vector<Event>> Create() {
    return conductor.Execute(CreateSweep{attune::testing::ToySpec(), "text", ""});
  }

  attune::testing::MemoryStore store;
  const Algorithms algorithms = attune::testing::ToyAlgorithms();
  std::atomic<int64_t> now = 0;
  Recorder recorder;
  Conductor conductor{algorithms, store, [this] { return Time{++now}; }};
};

TEST_F(ConductorTest, AnswersAfterTheCommit) {
  const auto events = Create();
  ASSERT_TRUE(events.ok());
  EXPECT_EQ(events->size(), 1u);
  EXPECT_GE(conductor.WaitForEvents(EventSeq{0}, kPatienceMs), EventSeq{1});
}

TEST_F(ConductorTest, ConsequencesAreInTheTransactionOfTheCommand) {
  ASSERT_TRUE(Join().ok());
  ASSERT_TRUE(Create().ok());
  conductor.Query([](const Brain&) {});
  EXPECT_EQ(store.commits, 2);
  EXPECT_EQ(store.events.size(), 6u);  // joined, created, 2 × (trial, attempt)
}

TEST_F(ConductorTest, ListenersSeeEveryEventInOrder) {
  ASSERT_TRUE(Join().ok());
  ASSERT_TRUE(Create().ok());
  conductor.Query([&](const Brain&) {
    ASSERT_EQ(recorder.seen.size(), 6u);
    for (size_t i = 0; i < recorder.seen.size(); ++i) EXPECT_EQ(recorder.seen[i].value, i + 1);
  });
}

TEST_F(ConductorTest, ARefusedCommandLeavesNoTrace) {
  const auto events = conductor.Execute(StopSweep{SweepId{7}});
  ASSERT_FALSE(events.ok());
  EXPECT_EQ(events.error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(store.events.empty());
}

TEST_F(ConductorTest, RefusesBatchesWhileTheDiskIsFull) {
  ASSERT_TRUE(Join().ok());
  conductor.Query([&](const Brain&) {
    store.full = Error{ErrorCode::kStorageFull, "the disk is full"};
  });
  const auto refused = Create();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kStorageFull);
  EXPECT_FALSE(conductor.Ready().ok());
  EXPECT_FALSE(Create().ok());
  conductor.Query([&](const Brain& brain) {
    EXPECT_TRUE(brain.state().sweeps.empty());
    store.full.reset();
    now += kProbeIntervalUs;
  });
  auto again = Create();
  while (!again.ok()) again = Create();  // until the next probe of the store
  EXPECT_TRUE(conductor.Ready().ok());
  conductor.Query([&](const Brain& brain) {
    EXPECT_EQ(brain.state().last_seq.value, store.events.size());
    EXPECT_EQ(brain.state().sweeps.size(), 1u);
  });
}

TEST_F(ConductorTest, ContinuesTheLogAfterARestart) {
  ASSERT_TRUE(Create().ok());
  conductor.Stop();
  Conductor next(algorithms, store, [this] { return Time{++now}; });
  next.SetReachable([](const std::string&) { return true; });
  ASSERT_TRUE(next.Start().ok());
  ASSERT_TRUE(next.Execute(JoinExecutor{"box", "a", "127.0.0.1", {.cpus = 2}}).ok());
  next.Query([](const Brain& brain) {
    EXPECT_EQ(brain.state().Find(SweepId{1})->Count(TrialState::kRunning), 2);
  });
}

TEST_F(ConductorTest, StartsFromTheLastSnapshotAndTheLogAfterIt) {
  ASSERT_TRUE(Create().ok());
  conductor.Stop();
  ASSERT_EQ(store.snapshots.size(), 1u);
  EXPECT_EQ(store.snapshots.begin()->first, EventSeq{1});
  store.read_after.clear();
  Conductor next(algorithms, store, [this] { return Time{++now}; });
  ASSERT_TRUE(next.Start().ok());
  EXPECT_THAT(store.read_after, ElementsAre(EventSeq{1}));
  next.Query([](const Brain& brain) { EXPECT_NE(brain.state().Find(SweepId{1}), nullptr); });
}

TEST_F(ConductorTest, FallsBackToTheSnapshotBeforeADamagedOne) {
  ASSERT_TRUE(Create().ok());
  conductor.Stop();
  {
    Conductor second(algorithms, store, [this] { return Time{++now}; });
    ASSERT_TRUE(second.Start().ok());
    ASSERT_TRUE(second.Execute(CreateSweep{attune::testing::ToySpec(), "text", ""}).ok());
  }
  ASSERT_EQ(store.snapshots.size(), 2u);
  store.snapshots.rbegin()->second.resize(20);
  store.read_after.clear();
  Conductor third(algorithms, store, [this] { return Time{++now}; });
  ASSERT_TRUE(third.Start().ok());
  EXPECT_THAT(store.read_after, ElementsAre(EventSeq{1}));
  third.Query([](const Brain& brain) { EXPECT_EQ(brain.state().sweeps.size(), 2u); });
}

TEST_F(ConductorTest, ReadsTheWholeLogWithoutAUsableSnapshot) {
  ASSERT_TRUE(Create().ok());
  conductor.Stop();
  store.snapshots[EventSeq{1}] = "damaged";
  store.read_after.clear();
  Conductor next(algorithms, store, [this] { return Time{++now}; });
  ASSERT_TRUE(next.Start().ok());
  EXPECT_THAT(store.read_after, ElementsAre(EventSeq{0}));
  next.Query([](const Brain& brain) { EXPECT_EQ(brain.state().sweeps.size(), 1u); });
}

// A sweep that has ended, and a stopped conductor with a snapshot of it.
class EndedSweepTest : public ConductorTest {
 protected:
  EndedSweepTest() {
    EXPECT_TRUE(Create().ok());
    EXPECT_TRUE(conductor.Execute(StopSweep{SweepId(1)}).ok());
    conductor.Stop();
    EXPECT_EQ(store.ended.size(), 1u);
    store.read_after.clear();
  }
  Result<std::vector<Event>> Reopen(Conductor& by) {
    return by.Execute(ExtendSweep{.sweep = SweepId(1), .max_trials = 1000});
  }
};

TEST_F(EndedSweepTest, IsReopenedFromItsStoredPart) {
  Conductor next(algorithms, store, [this] { return Time{++now}; });
  ASSERT_TRUE(next.Start().ok());
  EXPECT_THAT(store.read_after, ElementsAre(EventSeq(store.events.size())));
  next.Query(
      [](const Brain& brain) { EXPECT_TRUE(brain.state().ended.at(SweepId(1)).saved.empty()); });
  ASSERT_TRUE(Reopen(next).ok());
  next.Query([](const Brain& brain) {
    EXPECT_EQ(brain.state().Find(SweepId(1))->state, SweepState::kRunning);
  });
}

TEST_F(EndedSweepTest, LeavesMemoryAfterItsLastUnpin) {
  Conductor next(algorithms, store, [this] { return Time{++now}; });
  ASSERT_TRUE(next.Start().ok());
  const CheckpointId checkpoint{{SweepId(1), TrialNumber(0)}, 1, Step(1)};
  ASSERT_TRUE(next.Execute(PinCheckpoint{checkpoint, false}).ok());
  next.Query(
      [](const Brain& brain) { EXPECT_TRUE(brain.state().ended.at(SweepId(1)).saved.empty()); });
  EXPECT_TRUE(Reopen(next).ok());
}

TEST_F(EndedSweepTest, DamageIsReportedToARequestToReopenIt) {
  store.ended.begin()->second.back() ^= 1;
  Conductor next(algorithms, store, [this] { return Time{++now}; });
  ASSERT_TRUE(next.Start().ok());
  const auto refused = Reopen(next);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kCorrupt);
}

TEST_F(EndedSweepTest, SkipsASnapshotWithAMissingPart) {
  store.ended.clear();
  Conductor next(algorithms, store, [this] { return Time{++now}; });
  ASSERT_TRUE(next.Start().ok());
  EXPECT_THAT(store.read_after, ElementsAre(EventSeq(0)));
  EXPECT_TRUE(Reopen(next).ok());
}

TEST_F(EndedSweepTest, ReadsTheWholeLogIfItReopensADamagedPart) {
  const auto snapshot = *store.snapshots.begin();
  auto parts = store.ended;
  {
    Conductor next(algorithms, store, [this] { return Time{++now}; });
    ASSERT_TRUE(next.Start().ok());
    ASSERT_TRUE(Reopen(next).ok());
  }
  store.snapshots = {snapshot};  // the last process was killed before it could save another
  parts.begin()->second.back() ^= 1;
  store.ended = parts;
  store.read_after.clear();
  Conductor last(algorithms, store, [this] { return Time{++now}; });
  ASSERT_TRUE(last.Start().ok());
  EXPECT_THAT(store.read_after, ElementsAre(snapshot.first, EventSeq(0)));
  last.Query([](const Brain& brain) { EXPECT_NE(brain.state().Find(SweepId(1)), nullptr); });
}

TEST_F(ConductorTest, AFailedSnapshotDoesNotFailTheBatch) {
  ASSERT_TRUE(Create().ok());
  conductor.Query([&](const Brain&) {
    store.full = Error{ErrorCode::kStorageFull, "the disk is full"};
  });
  conductor.Stop();
  EXPECT_TRUE(store.snapshots.empty());
  store.full.reset();
  Conductor next(algorithms, store, [this] { return Time{++now}; });
  EXPECT_TRUE(next.Start().ok());
}

TEST_F(ConductorTest, TimeContinuesFromALogAheadOfTheClock) {
  now = 1'000'000'000;
  ASSERT_TRUE(Create().ok());
  const int64_t last_us = store.events.back().time.us;
  conductor.Stop();
  std::atomic<int64_t> slow = 5;  // the machine's clock was set back
  Conductor next(algorithms, store, [&] { return Time{slow}; });
  ASSERT_TRUE(next.Start().ok());
  slow += 70;
  ASSERT_TRUE(next.Execute(CreateSweep{attune::testing::ToySpec(), "text", ""}).ok());
  next.Stop();
  EXPECT_EQ(store.events.back().time.us, last_us + 70);
}

// A failed trial waits for a backoff that only the clock ends.
class Backoff : public ConductorTest {
 protected:
  void FailOnce(Conductor& which, Seconds backoff) {
    SweepSpec spec = attune::testing::ToySpec();
    spec.stop.max_trials = 1;
    spec.failure.backoff = backoff;
    ASSERT_TRUE(which.Execute(JoinExecutor{"box", "a", "127.0.0.1", {.cpus = 1}}).ok());
    ASSERT_TRUE(which.Execute(CreateSweep{spec, "text", ""}).ok());
    const AttemptEnded failed{.attempt = {{SweepId{1}, TrialNumber{0}}, 1},
                              .outcome = Outcome::kFailed,
                              .failure = {.kind = FailureKind::kExit, .rank = 0, .exit_code = 1}};
    ASSERT_TRUE(which.Execute(RecordFact{Epoch{1}, failed}).ok());
  }
  static bool Runs(Conductor& which) {
    bool runs = false;
    which.Query([&](const Brain& brain) {
      runs = brain.state().Find(SweepId{1})->Count(TrialState::kRunning) == 1;
    });
    return runs;
  }
};

TEST_F(Backoff, EndsByTheClockAlone) {
  conductor.Stop();
  attune::testing::MemoryStore fresh;
  Conductor real(algorithms, fresh, SteadyClock());
  real.SetReachable([](const std::string&) { return true; });
  ASSERT_TRUE(real.Start().ok());
  FailOnce(real, Seconds(0.01));
  EventSeq last = real.WaitForEvents(EventSeq{0}, 0);
  while (!Runs(real)) last = real.WaitForEvents(last, kPatienceMs);
  EXPECT_TRUE(std::holds_alternative<AttemptAssigned>(fresh.events.back().fact));
}

TEST_F(Backoff, HoldsUntilItsTime) {
  FailOnce(conductor, Seconds(10));
  conductor.CheckForStarts();
  EXPECT_FALSE(Runs(conductor));
  now += 10'000'000;
  conductor.CheckForStarts();
  EXPECT_TRUE(Runs(conductor));
}

TEST_F(ConductorTest, AStoppedConductorRefusesAndEndsWaits) {
  auto wait = std::async(std::launch::async,
                         [&] { return conductor.WaitForEvents(EventSeq{5}, kPatienceMs); });
  conductor.Stop();
  EXPECT_EQ(wait.get(), EventSeq{0});
  const auto refused = Create();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
}

// An executor that reconnects during a stop must not be told that nothing should run.
TEST_F(ConductorTest, ShowsItsLastStateOnceStopped) {
  ASSERT_TRUE(Create().ok());
  conductor.Stop();
  bool shown = false;
  conductor.Post([&](const Brain&) { shown = true; });
  EXPECT_FALSE(shown);
  size_t sweeps = 0;
  conductor.Query([&](const Brain& brain) { sweeps = brain.state().sweeps.size(); });
  EXPECT_EQ(sweeps, 1u);
}

TEST_F(ConductorTest, ManyThreadsAreServedInBatches) {
  constexpr int kThreads = 8;
  constexpr int kSkip = 50;
  std::vector<std::thread> threads;
  std::atomic<int> created = 0;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < kSkip; ++k) created += Create().ok() ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(created, kThreads * kSkip);
  conductor.Query([&](const Brain& brain) {
    EXPECT_EQ(brain.state().sweeps.size(), static_cast<size_t>(kThreads * kSkip));
    EXPECT_EQ(store.events.size(), recorder.seen.size());
  });
}

// Calls all entry points at once until the conductor stops. Most useful under ThreadSanitizer.
TEST_F(ConductorTest, EveryKindOfCallerIsServedUntilItStops) {
  constexpr int kTrials = 400;
  ASSERT_TRUE(Join().ok());
  SweepSpec spec = attune::testing::ToySpec();
  spec.stop.max_trials = kTrials;
  ASSERT_TRUE(conductor.Execute(CreateSweep{spec, "text", ""}).ok());
  std::atomic<bool> over = false;
  std::vector<std::thread> callers;
  const auto until_over = [&](auto call) {
    callers.emplace_back([&over, call] {
      while (!over) call();
    });
  };
  until_over([&] { conductor.WaitForEvents(EventSeq(1'000'000), 1); });
  until_over([&] {
    conductor.CheckForStarts();
    conductor.Query([](const Brain&) {});
  });
  until_over([&] {
    conductor.Post([](const Brain& brain) { EXPECT_LE(brain.state().sweeps.size(), 1u); });
    EXPECT_FALSE(conductor.Execute(KillSweep{SweepId(99)}).ok());
    static_cast<void>(conductor.Ready());
  });

  // An executor whose gangs report their six steps and end.
  std::atomic<int> answered = 0;
  for (bool done = false; !done;) {
    std::vector<Command> facts;
    conductor.Query([&](const Brain& brain) {
      const Sweep* sweep = brain.state().Find(SweepId(1));
      done = sweep == nullptr;
      if (done) return;
      for (const TrialNumber number : sweep->live) {
        const Trial& trial = *sweep->Find(number);
        if (HasEnded(trial.state)) {
          facts.push_back(
              RecordFact{trial.live->epoch, AttemptEnded{trial.live->id, Outcome::kFinished, {}}});
        } else {
          facts.push_back(RecordFact{
              trial.live->epoch,
              TrialReported{trial.live->id, {Step(trial.last_step.value + 1), {{"score", 0.9}}}}});
        }
      }
    });
    const size_t told = facts.size();
    conductor.Record(std::move(facts),
                     [&, told](const Status& stored) { answered += stored.ok() ? told : 0; });
  }
  conductor.Query([&](const Brain& brain) {
    EXPECT_EQ(brain.state().ended.at(SweepId(1)).state, SweepState::kCompleted);
    EXPECT_EQ(store.events.size(), recorder.seen.size());
  });
  conductor.Stop();
  over = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_GE(answered, kTrials * 7);
}

}  // namespace
}  // namespace attune::server
