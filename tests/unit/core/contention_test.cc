#include "core/brain/contention.h"

#include "tests/support/mentions.h"
#include "tests/unit/core/brain_harness.h"

namespace attune {
namespace {

class Contention : public BrainTest {
 protected:
  static SweepSpec Gangs(int gpus, int max_trials = 0) {
    SweepSpec spec = testing::ToySpec();
    spec.gang = {.workers = gpus, .per_worker = {.cpus = 0, .gpus = 1}};
    spec.stop.max_trials = max_trials;
    return spec;
  }
  static SweepSpec Shares(int percent) {
    SweepSpec spec = Gangs(1);
    spec.gang.gpu_percent = percent;
    return spec;
  }
  size_t Gangs(SweepId id) const { return sweep(id).live.size(); }
  // Ends the first gang of the sweep, or its first gang on `executor`.
  std::vector<Event> EndOneGang(SweepId id, const std::string& executor = "") {
    for (TrialNumber number : sweep(id).live) {
      const Attempt live = *sweep(id).Find(number)->live;
      if (executor.empty() || live.ranks[0].executor == executor)
        return Do(RecordFact{live.epoch, AttemptEnded{live.id, Outcome::kFinished, {}}});
    }
    ADD_FAILURE() << "no gang";
    return {};
  }
};

TEST_F(Contention, AHigherPriorityIsServedFirst) {
  Join("gpus", {.gpus = 2});
  const SweepId low = Create(Gangs(1));
  SweepSpec urgent = Gangs(1);
  urgent.priority = 1;
  const SweepId high = Create(urgent);
  EndOneGang(low);
  EndOneGang(low);
  EXPECT_EQ(Gangs(low), 0u);
  EXPECT_EQ(Gangs(high), 2u);
}

TEST_F(Contention, AReturnedShareIsUsedByTheNextGang) {
  Join("gpus", {.gpus = 1});
  const SweepId id = Create(Shares(30));
  EXPECT_EQ(Gangs(id), 3u);
  EndOneGang(id);
  EXPECT_EQ(Gangs(id), 3u);
}

TEST_F(Contention, AWaitingGangOfOneHostDoesNotBlockSpanningGangs) {
  JoinSpanning("a", {.gpus = 1});
  JoinSpanning("b", {.gpus = 1});
  SweepSpec whole = Gangs(2);
  whole.gang.placement = PlacementPolicy::kOneHost;
  Create(whole);
  EXPECT_EQ(Gangs(Create(Gangs(2))), 1u);
}

TEST_F(Contention, SharesAreGivenWhileNoGpuIsReserved) {
  Join("host", {.cpus = 4, .gpus = 1});
  const SweepId small = Create(Shares(25));
  SweepSpec wide = Gangs(1);
  wide.gang = {.workers = 1, .per_worker = {.cpus = 4}};
  SweepSpec narrow = Gangs(1);
  narrow.gang = {.workers = 1, .per_worker = {.cpus = 1}};
  const SweepId first = Create(narrow);
  const SweepId large = Create(wide);
  ASSERT_EQ(Gangs(first), 6u) << "two of them on box";
  EndOneGang(first, "host");
  ASSERT_TRUE(brain.state().reservation) << "for the sweep `large`";
  EXPECT_EQ(brain.state().reservation->sweep, large);
  for (int i = 0; i < 6; ++i) {
    EndOneGang(small);
    EXPECT_EQ(Gangs(small), 4u);
  }
}

TEST_F(Contention, SharesOfAGpuAreComparedAsFractions) {
  Join("gpus", {.gpus = 2});
  const SweepId first = Create(Shares(25));
  ASSERT_EQ(Gangs(first), 8u);
  const SweepId second = Create(Shares(50));
  for (int i = 0; i < 8; ++i) EndOneGang(first);
  EXPECT_EQ(Gangs(first), 4u) << "a GPU for each sweep";
  EXPECT_EQ(Gangs(second), 2u);
}

TEST_F(Contention, AGangThatNeedsAWholeGpuIsNotStarvedByShares) {
  Join("gpus", {.gpus = 1});
  const SweepId small = Create(Shares(50));
  const SweepId large = Create(Gangs(1));
  for (int i = 0; i < 2; ++i) EndOneGang(small);
  EXPECT_EQ(Gangs(large), 1u);
}

TEST_F(Contention, SweepsOfEqualPriorityShareByTheirDominantResource) {
  Join("gpus", {.gpus = 8});
  const SweepId twos = Create(Gangs(2));
  const SweepId ones = Create(Gangs(1));
  EndOneGang(twos);
  EndOneGang(twos);
  EXPECT_EQ(Gangs(twos), 2u);
  EXPECT_EQ(Gangs(ones), 4u);
}

TEST_F(Contention, CapacityIsSharedByOwnersAndThenByTheirSweeps) {
  Join("gpus", {.gpus = 8});
  const auto create = [&](const std::string& owner) {
    Do(CreateSweep{.spec = Gangs(1), .owner = owner});
    return brain.state().last_sweep;
  };
  const SweepId first = create("ada");
  const SweepId second = create("ada");
  const SweepId other = create("bob");
  for (int i = 0; i < 12; ++i) EndOneGang(i % 2 == 0 ? first : Gangs(second) > 0 ? second : first);
  EXPECT_EQ(Gangs(other), 4u);
  EXPECT_EQ(Gangs(first), 2u);
  EXPECT_EQ(Gangs(second), 2u);
}

TEST_F(Contention, ALargeGangIsNotStarvedBySmallOnes) {
  Join("gpus", {.gpus = 4});
  const SweepId small = Create(Gangs(1));
  const SweepId large = Create(Gangs(4, 1));
  const auto events = EndOneGang(small);
  ASSERT_NE(Find<SlotsReserved>(events), nullptr);
  EXPECT_EQ(Find<SlotsReserved>(events)->executor, "gpus");
  EXPECT_EQ(Gangs(small), 3u);
  EXPECT_THAT(brain.Waiting(sweep(large)), testing::Mentions("gpus"));
  EndOneGang(small);
  EndOneGang(small);
  EndOneGang(small);
  EXPECT_EQ(Gangs(large), 1u);
  EXPECT_FALSE(brain.state().reservation);
  EXPECT_THAT(brain.Waiting(sweep(small)), testing::Mentions("1 GPU"));
}

// Regression: the slots stayed idle until the next event.
TEST_F(Contention, ASweepRaisedAboveAReservationStartsAtOnce) {
  Join("gpus", {.gpus = 4});
  const SweepId small = Create(Gangs(1));
  const SweepId large = Create(Gangs(4, 1));
  EndOneGang(small);
  ASSERT_EQ(Gangs(small), 3u);
  SweepSpec spec = sweep(small).spec;
  spec.priority = 1;
  Do(EditSweep{.sweep = small, .spec = spec, .seen = brain.state().last_seq});
  EXPECT_EQ(Gangs(small), 4u);
  EXPECT_EQ(Gangs(large), 0u);
}

TEST_F(Contention, AReservationDoesNotAffectOtherExecutors) {
  Join("a", {.gpus = 2});
  Join("b", {.gpus = 4});
  const SweepId small = Create(Gangs(1));
  const SweepId large = Create(Gangs(4, 1));
  EndOneGang(small, "b");
  EXPECT_TRUE(brain.state().reservation->workers.contains("b"));
  EndOneGang(small, "a");
  EXPECT_EQ(Gangs(small), 5u) << "the freed slot of a is used again";
  EXPECT_EQ(Gangs(large), 0u);
}

TEST_F(Contention, SlotsBeyondTheReservationMayBeUsed) {
  Join("gpus", {.gpus = 4});
  const SweepId small = Create(Gangs(1));
  const SweepId large = Create(Gangs(3, 1));
  EndOneGang(small);
  EXPECT_EQ(Gangs(small), 4u) << "one GPU of four is not reserved";
  EndOneGang(small);
  EndOneGang(small);
  EXPECT_EQ(Gangs(small), 2u);
  EndOneGang(small);
  EXPECT_EQ(Gangs(large), 1u);
  EXPECT_EQ(Gangs(small), 1u);
}

TEST_F(Contention, GangsOfEqualSizeReserveNothing) {
  const SweepId first = Create(testing::ToySpec());
  Create(testing::ToySpec());
  EndOneGang(first);
  EXPECT_FALSE(brain.state().reservation);
}

TEST_F(Contention, AReservationEndsWhenItsGangNeedsNoneAnyMore) {
  Join("gpus", {.gpus = 4});
  const SweepId small = Create(Gangs(1));
  const SweepId large = Create(Gangs(4, 1));
  EndOneGang(small);
  ASSERT_TRUE(brain.state().reservation);
  const auto events = Do(PauseSweep{large});
  ASSERT_NE(Find<ReservationReleased>(events), nullptr);
  EXPECT_EQ(Gangs(small), 4u);
}

TEST_F(Contention, AReservationMovesWhenItsExecutorIsLost) {
  Join("a", {.gpus = 4});
  Join("b", {.gpus = 4});
  const SweepId small = Create(Gangs(1));
  Create(Gangs(4, 1));
  EndOneGang(small, "a");
  EXPECT_TRUE(brain.state().reservation->workers.contains("a"));
  Do(LoseExecutor{"a", brain.state().executors.at("a").incarnation, "silent"});
  EndOneGang(small, "b");
  EXPECT_TRUE(brain.state().reservation->workers.contains("b"));
}

TEST_F(Contention, ADisconnectedExecutorKeepsItsReservation) {
  Join("gpus", {.gpus = 4});
  const SweepId small = Create(Gangs(1));
  const SweepId large = Create(Gangs(4, 1));
  EndOneGang(small);
  ASSERT_TRUE(brain.state().reservation);
  connected = false;  // as after a restart of the server
  EXPECT_EQ(Find<ReservationReleased>(Wait(1)), nullptr);
  EndOneGang(small);
  connected = true;
  Wait(1);
  EXPECT_EQ(brain.state().reservation->sweep, large);
  EXPECT_EQ(Gangs(small), 2u) << "no other gang took the free slot";
  connected = false;
  const auto events =
      Do(LoseExecutor{"gpus", brain.state().executors.at("gpus").incarnation, "silent"});
  ASSERT_NE(Find<ReservationReleased>(events), nullptr);
  EXPECT_THAT(Find<ReservationReleased>(events)->reason, testing::Mentions("gpus"));
}

TEST_F(Contention, AGangTooLargeForEveryExecutorBlocksNobody) {
  Join("gpus", {.gpus = 4});
  const SweepId huge = Create(Gangs(8));
  const SweepId small = Create(Gangs(1));
  EXPECT_EQ(Gangs(small), 4u);
  EXPECT_THAT(brain.Waiting(sweep(huge)), testing::Mentions("8 GPUs", "gpus"));
  EXPECT_FALSE(brain.state().reservation);
}

TEST_F(Contention, DemandListsOnlyGangsThatCannotBePlaced) {
  const SweepId twos = Create(Gangs(2, 5));
  SweepSpec few = Gangs(1);
  few.max_concurrent_trials = 3;
  const SweepId ones = Create(few);
  std::vector<Demand> demands = brain.Demands();
  ASSERT_EQ(demands.size(), 2u);
  EXPECT_EQ(demands[0].sweep, twos);
  EXPECT_EQ(demands[0].gangs, 5);
  EXPECT_EQ(demands[0].request.max_workers, 2);
  EXPECT_EQ(demands[0].request.per_worker.gpus, 1);
  EXPECT_THAT(demands[0].reason, testing::Mentions("2 GPUs", "box", "0"));
  EXPECT_EQ(demands[1].sweep, ones);
  EXPECT_EQ(demands[1].gangs, 3);

  Join("gpus", {.gpus = 9});
  demands = brain.Demands();
  ASSERT_EQ(demands.size(), 1u) << "max_concurrent_trials of the second sweep are running";
  EXPECT_EQ(demands[0].sweep, twos);
  EXPECT_EQ(demands[0].gangs, 2);

  Do(PauseSweep{twos});
  EXPECT_TRUE(brain.Demands().empty());
}

TEST_F(Contention, DemandTellsWhetherItsGangCanEverStart) {
  Join("gpus", {.gpus = 4});
  Create(Gangs(4, 2));
  const SweepId large = Create(Gangs(8));
  SweepSpec labelled = Gangs(1);
  labelled.gang.required = {{"gpu", {"h100"}}};
  const SweepId h100 = Create(labelled);
  const auto can_start = [&](SweepId sweep) {
    const std::vector<Demand> demands = brain.Demands();
    return std::ranges::find(demands, sweep, &Demand::sweep)->can_start;
  };
  EXPECT_TRUE(brain.Demands().front().can_start) << "it can start once the other gang has ended";
  EXPECT_FALSE(can_start(large));
  EXPECT_FALSE(can_start(h100));
  Do(DrainExecutor{"gpus", "a new disk"});
  EXPECT_TRUE(brain.Demands().front().can_start) << "the drained executor may be resumed";
}

TEST_F(Contention, DemandOfAnUnlimitedSweepIsBounded) {
  Create(Gangs(1));
  EXPECT_EQ(brain.Demands()[0].gangs, kDemandGangsMax);
}

TEST_F(Contention, SpreadGangsGoToTheExecutorWithTheMostFree) {
  Join("a", {.gpus = 2});
  Join("b", {.gpus = 4});
  SweepSpec spec = Gangs(1, 2);
  spec.gang.placement = PlacementPolicy::kSpread;
  Create(spec);
  EXPECT_EQ(trial(0).live->ranks[0].executor, "b");
  EXPECT_EQ(trial(1).live->ranks[0].executor, "b");
  EXPECT_EQ(brain.state().executors.at("a").host.gpus_free.size(), 2u);
  Create(spec);
  EXPECT_EQ(trial(0).live->ranks[0].executor, "a") << "a tie is broken by name";
}

}  // namespace
}  // namespace attune
