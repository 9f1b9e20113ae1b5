#include "server/conductor/log_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/result.h"
#include "server/conductor/conductor_machine.h"
#include "tests/support/memory_store.h"
#include "tests/support/toy_algorithms.h"

namespace attune::server {
namespace {

using ::testing::HasSubstr;

struct Marks final : LogMarks {
  std::optional<LogMark> Read() override { return mark; }
  void Write(const LogMark& written) override { mark = written; }
  std::optional<LogMark> mark;
};

// One process of a server, without executors.
class Process final : private Submissions {
 public:
  Process(const Algorithms& algorithms, EventStore& store, Marks& marks, uint64_t identity)
      : keeper_(*this, marks, [identity] { return LogIdentity(identity); }),
        machine({.make_decider =
                     [&] {
                       return MakeBrainDecider(algorithms, [](const auto&) { return Reach(true); });
                     },
                 .store = &store}) {
    machine.Subscribe(&keeper_);
    EXPECT_TRUE(machine.Start(Time{1'000}, {}).ok());
    Step();
  }

  void Step() { EXPECT_TRUE(machine.Step(queue_.TakeBatch(), Time{clock_us += 500'000}).ok()); }
  void Create() {
    Submit(CreateSweep{attune::testing::ToySpec(), "text", ""}, {});
    Step();
  }
  const State& state() const { return machine.brain().state(); }
  bool AwaitsIdentity() const { return keeper_.AwaitsIdentity(); }

 private:
  void Submit(Command command, Done done) override {
    Submission submission{.done = std::move(done)};
    submission.commands.push_back(std::move(command));
    queue_.Push(std::move(submission));
  }
  void Record(std::vector<Command>, Stored) override {}
  void RecordEnds(std::vector<Command>) override {}
  void Post(StateReader) override {}
  void CheckForStarts() override {}

  Queue queue_;
  LogKeeper keeper_;

 public:
  int64_t clock_us = 1'000;
  ConductorMachine machine;
};

class LogKeeperTest : public ::testing::Test {
 protected:
  const Algorithms algorithms = attune::testing::ToyAlgorithms();
  attune::testing::MemoryStore store;
  Marks marks;
};

TEST_F(LogKeeperTest, ANewLogGetsAnIdentityAndARestartKeepsIt) {
  Process(algorithms, store, marks, 7).Create();
  ASSERT_TRUE(marks.mark);
  EXPECT_EQ(marks.mark->identity, LogIdentity(7));
  EXPECT_EQ(marks.mark->seq, store.LastSeq());
  const Process next(algorithms, store, marks, 8);
  EXPECT_EQ(IdentityOf(next.state()), LogIdentity(7));
  EXPECT_EQ(next.state().last_seq, marks.mark->seq);
}

TEST_F(LogKeeperTest, ALogThatEndsBeforeItsMarkCountsAsRestored) {
  EventSeq backup;
  {
    Process first(algorithms, store, marks, 7);
    backup = store.LastSeq();
    first.Create();
  }
  store.events.resize(backup.value);
  Process next(algorithms, store, marks, 8);
  EXPECT_EQ(IdentityOf(next.state()), LogIdentity(8));
  EXPECT_THAT(std::get<LogIdentified>(store.events.back().fact).reason,
              HasSubstr("contained event"));
  next.Create();
  EXPECT_EQ(IdentityOf(next.state(), SweepId(1)), LogIdentity(8));
  EXPECT_EQ(marks.mark->identity, LogIdentity(8));
}

TEST_F(LogKeeperTest, ALogWithAMissingOrForeignMarkCountsAsRestored) {
  Process(algorithms, store, marks, 7).Create();
  marks.mark.reset();
  EXPECT_EQ(IdentityOf(Process(algorithms, store, marks, 8).state()), LogIdentity(8));
  marks.mark->identity = LogIdentity(99);
  EXPECT_EQ(IdentityOf(Process(algorithms, store, marks, 9).state()), LogIdentity(9));
  marks.mark = LogMark{LogIdentity(0), EventSeq(0)};  // written by attune db restore
  EXPECT_EQ(IdentityOf(Process(algorithms, store, marks, 10).state()), LogIdentity(10));
  EXPECT_EQ(IdentityOf(Process(algorithms, store, marks, 11).state()), LogIdentity(10));
}

// The epochs of the new part must differ from those of the lost part.
TEST_F(LogKeeperTest, ALogRestoredToBeforeItsIdentityCountsAsRestored) {
  Process(algorithms, store, marks, 7).Create();
  store.events.clear();
  Process next(algorithms, store, marks, 8);
  next.Step();
  ASSERT_EQ(next.state().parts.size(), 2u);
  EXPECT_THAT(std::get<LogIdentified>(store.events.back().fact).reason, HasSubstr("another log"));
  EXPECT_GT(next.state().last_epoch.value, uint64_t{1} << 32);
  EXPECT_EQ(marks.mark->seq, store.LastSeq());
}

// Other components may store events before the identity.
TEST_F(LogKeeperTest, TheFirstIdentityIsAwaitedWhileTheDiskIsFull) {
  store.full = Error{ErrorCode::kStorageFull, "the disk is full"};
  Process first(algorithms, store, marks, 7);
  store.full.reset();
  first.clock_us += kProbeIntervalUs;
  first.Create();
  ASSERT_EQ(IdentityOf(first.state()), LogIdentity(0));
  ASSERT_EQ(first.state().last_sweep, SweepId(1));
  EXPECT_TRUE(first.AwaitsIdentity());
  first.Step();
  EXPECT_EQ(IdentityOf(first.state(), SweepId(1)), LogIdentity(7));
  EXPECT_FALSE(first.AwaitsIdentity());
}

// A process that dies before the identity is stored leaves the mark as it was.
TEST_F(LogKeeperTest, KeepsTheOldMarkWhileTheDiskIsFull) {
  EventSeq backup;
  {
    Process first(algorithms, store, marks, 7);
    backup = store.LastSeq();
    first.Create();
  }
  const EventSeq last = marks.mark->seq;
  store.events.resize(backup.value);
  store.full = Error{ErrorCode::kStorageFull, "the disk is full"};
  Process next(algorithms, store, marks, 8);
  EXPECT_EQ(IdentityOf(next.state()), LogIdentity(7));
  EXPECT_EQ(marks.mark->seq, last);
  store.full.reset();
  next.clock_us += kProbeIntervalUs;
  next.Step();
  next.Step();
  EXPECT_EQ(IdentityOf(next.state()), LogIdentity(8));
  EXPECT_EQ(marks.mark->identity, LogIdentity(8));
}

}  // namespace
}  // namespace attune::server
