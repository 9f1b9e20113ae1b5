#include "core/state/shared_state.h"

#include "core/log/request_key.h"
#include "core/state/snapshot.h"
#include "tests/unit/core/brain_harness.h"

namespace attune {
namespace {

// Deleted sweeps, and the effects of their events on the rest of the state.
class SharedStateOfSweeps : public BrainTest {
 protected:
  static SweepSpec Gangs(int gpus, int max_trials = 1) {
    SweepSpec spec = testing::ToySpec();
    spec.gang = {.workers = gpus, .per_worker = {.cpus = 0, .gpus = 1}};
    spec.stop.max_trials = max_trials;
    return spec;
  }

  // Ends the first gang of the sweep.
  void End(SweepId id, Outcome outcome = Outcome::kFinished) {
    ASSERT_FALSE(sweep(id).live.empty());
    const Attempt live = *sweep(id).Find(*sweep(id).live.begin())->live;
    Failure failure;
    if (outcome == Outcome::kFailed)
      failure = {.kind = FailureKind::kExit, .rank = 0, .message = "it broke", .executor = "gpus"};
    Do(RecordFact{live.epoch, AttemptEnded{live.id, outcome, failure}});
  }

  void Delete(SweepId id) { Do(DeleteSweep{id, brain.state().last_seq}); }

  void SetPinned(SweepId id, int64_t step, bool pinned) {
    Do(PinCheckpoint{{{id, TrialNumber(0)}, 1, Step(step)}, pinned});
  }

  // The state after a replay of the log without the events of deleted sweeps.
  std::string StateWithoutErased() const {
    std::map<SweepId, EventSeq> deleted;
    for (const Event& event : log) {
      if (const auto* fact = std::get_if<SweepDeleted>(&event.fact))
        deleted[fact->sweep] = event.seq;
    }
    Brain replayed(algorithms, [](const std::string&) { return true; });
    for (const Event& event : log) {
      const auto sweep = SweepOf(event.fact);
      const bool erased = sweep && deleted.contains(*sweep) && event.seq < deleted.at(*sweep);
      if (!erased) replayed.Replay(event);
    }
    return SaveState(replayed.state());
  }
};

TEST_F(SharedStateOfSweeps, EpochsRandomStateAndTheReservationStay) {
  Join("gpus", {.gpus = 3});
  const SweepId other = Create(Gangs(1));
  const SweepId gone = Create(Gangs(1, 2));
  End(gone, Outcome::kFailed);
  const SweepId large = Create(Gangs(3));
  Create(Gangs(1));
  for (int i = 0; i < 2; ++i) End(gone);
  ASSERT_EQ(brain.state().Find(gone), nullptr);
  ASSERT_TRUE(brain.state().reservation);
  ASSERT_EQ(brain.state().reservation->sweep, large);
  ASSERT_EQ(brain.state().reservation->since, brain.state().last_epoch);
  ASSERT_NE(brain.state().executors.at("gpus").gang_history, GangHistory{});

  const Executor before = brain.state().executors.at("gpus");
  const Epoch last_epoch = brain.state().last_epoch;
  Delete(gone);
  EXPECT_EQ(brain.state().executors.at("gpus").gang_history, before.gang_history);
  EXPECT_EQ(brain.state().last_epoch, last_epoch);
  EXPECT_EQ(SaveState(brain.state()), StateWithoutErased());
  End(other);
  EXPECT_EQ(sweep(large).live.size(), 1u);
  EXPECT_EQ(SaveState(brain.state()), StateWithoutErased());
}

TEST_F(SharedStateOfSweeps, TheNumberOfTheNewestSweepIsNotUsedAgain) {
  const SweepId gone = Create(testing::ToySpec());
  Do(KillSweep{gone});
  for (int i = 0; i < 2; ++i) End(gone, Outcome::kKilled);
  ASSERT_EQ(brain.state().Find(gone), nullptr);
  Delete(gone);
  EXPECT_EQ(SaveState(brain.state()), StateWithoutErased());
  EXPECT_EQ(Create(testing::ToySpec()), SweepId(gone.value + 1));
}

TEST_F(SharedStateOfSweeps, EarlierForgottenSweepsStayForgotten) {
  SweepSpec spec = testing::ToySpec();
  spec.stop.max_trials = 1;
  const auto run = [&](const std::string& key) {
    Do(CreateSweep{spec, "text", key});
    const SweepId id = brain.state().last_sweep;
    End(id);
    return id;
  };
  const SweepId first = run("first");
  const SweepId second = run("second");
  const SweepId third = run("third");
  for (size_t i = 0; i < kReopenableSweeps; ++i) run("key " + std::to_string(i));
  ASSERT_FALSE(brain.state().ended.contains(third));
  const SweepId again = run("second");  // the server has forgotten its key
  for (uint64_t gone = third.value + 1; gone < again.value; gone += 3) Delete(SweepId(gone));
  EXPECT_FALSE(brain.state().ended.contains(first));
  EXPECT_EQ(brain.state().by_key.at("second"), again);
  EXPECT_NE(again, second);
  EXPECT_EQ(SaveState(brain.state()), StateWithoutErased());
}

TEST_F(SharedStateOfSweeps, ARepeatedCreationOfADeletedSweepCreatesNothing) {
  Join("gpus", {.gpus = 1});
  const CreateSweep create{Gangs(1), "text", RequestKey("me", "key", "digest")};
  Do(create);
  const SweepId gone = brain.state().last_sweep;
  End(gone);
  Delete(gone);
  const EventSeq seen = brain.state().last_seq;
  Do(create);
  EXPECT_EQ(brain.state().last_seq, seen);
  EXPECT_EQ(SaveState(brain.state()), StateWithoutErased());
}

TEST_F(SharedStateOfSweeps, ANewIdentityOfTheLogStays) {
  Join("gpus", {.gpus = 1});
  Do(IdentifyLog{LogIdentity(0), LogIdentity(7), ""});
  const SweepId gone = Create(Gangs(1));
  Do(IdentifyLog{LogIdentity(7), LogIdentity(8), "a backup was restored"});
  End(gone);
  Delete(gone);
  EXPECT_EQ(SaveState(brain.state()), StateWithoutErased());
}

TEST_F(SharedStateOfSweeps, ChangesOfRecordsStayKnown) {
  SweepSpec spec = testing::ToySpec();
  spec.stop.max_trials = 1;
  const auto run = [&] {
    const SweepId id = Create(spec);
    Save(0, 2);
    Report(0, 2, 0.9);
    End(id);
    return id;
  };
  const SweepId stays = run();
  const SweepId gone = run();
  const EventSeq seen = brain.state().last_seq;
  for (int i = 0; i < 100; ++i) SetPinned(stays, 2, i % 2 == 0);
  const EventSeq seen_later = brain.state().last_seq;
  for (int i = 0; i < 200; ++i) SetPinned(gone, 2, i % 2 == 0);
  Delete(gone);
  EXPECT_EQ(SaveState(brain.state()), StateWithoutErased());
  // An old record is outdated, as without the deletion.
  EXPECT_EQ(RefusalOf(DeleteSweep{stays, seen}).code, ErrorCode::kConflict);
  Do(DeleteSweep{stays, seen_later});
}

}  // namespace
}  // namespace attune
