#include "executor/agent/reconciler.h"

#include <gmock/gmock.h>

#include "executor/agent/messages.h"

namespace attune::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class ReconcilerTest : public testing::Test {
 protected:
  static v1::Assignment MakeAssignment(uint32_t trial, uint64_t epoch,
                                       const std::vector<uint32_t>& gpus = {}) {
    v1::Assignment assignment;
    assignment.mutable_attempt()->set_sweep(1);
    assignment.mutable_attempt()->set_trial(trial);
    assignment.mutable_attempt()->set_attempt(static_cast<uint32_t>(epoch));
    assignment.mutable_attempt()->set_epoch(epoch);
    v1::RankSlot& slot = *assignment.add_ranks();
    for (const uint32_t gpu : gpus) slot.add_gpus(gpu);
    return assignment;
  }

  static gang::AttemptId Id(uint32_t trial, uint64_t epoch) {
    return FromProto(MakeAssignment(trial, epoch).attempt());
  }

  Reconciler::Actions SetDesired(const std::vector<v1::Assignment>& assignments,
                                 uint64_t revision) {
    v1::Desired desired;
    desired.set_revision(revision);
    desired.set_identity(identity_);
    for (const v1::Assignment& assignment : assignments) *desired.add_assignments() = assignment;
    reconciler_.SetDesired(std::move(desired));
    return Reconcile();
  }

  // Like SetDesired(), but the server's log has this identity.
  Reconciler::Actions SetDesiredOfLog(uint64_t identity,
                                      const std::vector<v1::Assignment>& assignments,
                                      uint64_t revision) {
    identity_ = identity;
    return SetDesired(assignments, revision);
  }

  // Keeps the ids of the gangs to start.
  Reconciler::Actions Reconcile() {
    Reconciler::Actions actions = reconciler_.Reconcile();
    started_.clear();
    for (const v1::Assignment& each : actions.start) started_.push_back(FromProto(each.attempt()));
    return actions;
  }

  Reconciler reconciler_;
  uint64_t identity_ = 0;
  std::vector<gang::AttemptId> started_;
};

TEST_F(ReconcilerTest, StartsAMissingGangOnce) {
  SetDesired({MakeAssignment(0, 1), MakeAssignment(1, 1)}, 1);
  EXPECT_THAT(started_, ElementsAre(Id(0, 1), Id(1, 1)));
  SetDesired({MakeAssignment(0, 1), MakeAssignment(1, 1)}, 2);
  EXPECT_THAT(started_, IsEmpty());
}

TEST_F(ReconcilerTest, IgnoresAnOlderRevision) {
  SetDesired({MakeAssignment(0, 1)}, 5);
  EXPECT_THAT(SetDesired({}, 4).cancel, IsEmpty());
  reconciler_.ForgetRevision();
  EXPECT_THAT(SetDesired({}, 1).cancel, ElementsAre(Id(0, 1)));
}

TEST_F(ReconcilerTest, IgnoresAStaleEpochWhileTheNewerRuns) {
  SetDesired({MakeAssignment(0, 2)}, 1);
  const auto actions = SetDesired({MakeAssignment(0, 2), MakeAssignment(0, 1)}, 2);
  EXPECT_THAT(started_, IsEmpty());
  EXPECT_THAT(actions.cancel, IsEmpty());
}

TEST_F(ReconcilerTest, IgnoresAStaleEpochAfterTheNewerHasEnded) {
  SetDesired({MakeAssignment(0, 2)}, 1);
  reconciler_.OnEnded(Id(0, 2));
  SetDesired({MakeAssignment(0, 1)}, 2);
  EXPECT_THAT(started_, IsEmpty());
}

// A restored log does not know the larger epoch and gives smaller epochs to the same trial.
TEST_F(ReconcilerTest, ALargerEpochOfALostLogDoesNotBlockATrial) {
  SetDesiredOfLog(7, {MakeAssignment(0, 200)}, 1);
  EXPECT_THAT(SetDesiredOfLog(8, {}, 2).cancel, ElementsAre(Id(0, 200)));
  reconciler_.OnEnded(Id(0, 200));
  SetDesiredOfLog(8, {MakeAssignment(0, 100)}, 3);
  EXPECT_THAT(started_, ElementsAre(Id(0, 100)));
}

TEST_F(ReconcilerTest, ANewerEpochWaitsForTheEndOfTheOldGang) {
  SetDesired({MakeAssignment(0, 1)}, 1);
  EXPECT_THAT(SetDesired({MakeAssignment(0, 2)}, 2).cancel, ElementsAre(Id(0, 1)));
  EXPECT_THAT(started_, IsEmpty());
  reconciler_.OnEnded(Id(0, 1));
  Reconcile();
  EXPECT_THAT(started_, ElementsAre(Id(0, 2)));
}

TEST_F(ReconcilerTest, DoesNotShareAGpuWithAnEndingGang) {
  SetDesired({MakeAssignment(0, 1, {0, 1})}, 1);
  SetDesired({MakeAssignment(1, 1, {1}), MakeAssignment(2, 1, {2})}, 2);
  EXPECT_THAT(started_, ElementsAre(Id(2, 1)));
  reconciler_.OnEnded(Id(0, 1));
  Reconcile();
  EXPECT_THAT(started_, ElementsAre(Id(1, 1)));
}

TEST_F(ReconcilerTest, RemembersAnEndUntilAcknowledgedAndUnlisted) {
  SetDesired({MakeAssignment(0, 1)}, 1);
  reconciler_.OnEnded(Id(0, 1));
  SetDesired({MakeAssignment(0, 1)}, 2);
  EXPECT_THAT(started_, IsEmpty());
  reconciler_.OnEndAcknowledged(Id(0, 1));
  SetDesired({MakeAssignment(0, 1)}, 3);
  EXPECT_THAT(started_, IsEmpty());
  SetDesired({}, 4);
  SetDesired({MakeAssignment(0, 1)}, 5);
  EXPECT_THAT(started_, ElementsAre(Id(0, 1)));
}

TEST_F(ReconcilerTest, VerdictsGoToRunningGangsOnly) {
  v1::Assignment assignment = MakeAssignment(0, 1);
  assignment.set_verdict_step(3);
  EXPECT_THAT(SetDesired({assignment}, 1).set_verdict, SizeIs(1));
  EXPECT_THAT(SetDesired({assignment}, 2).set_verdict, SizeIs(1));
  reconciler_.CancelAll();
  EXPECT_THAT(SetDesired({assignment}, 3).set_verdict, IsEmpty());
}

TEST_F(ReconcilerTest, DisownsAnUnknownUnwantedAttemptOnce) {
  v1::Desired desired;
  desired.set_revision(1);
  *desired.add_unwanted() = MakeAssignment(1, 4).attempt();
  reconciler_.SetDesired(desired);
  EXPECT_THAT(Reconcile().disown, ElementsAre(Id(1, 4)));
  EXPECT_THAT(Reconcile().disown, IsEmpty());
}

TEST_F(ReconcilerTest, CancelsARunningUnwantedAttemptWithoutDisowningIt) {
  SetDesired({MakeAssignment(1, 4)}, 1);
  v1::Desired desired;
  desired.set_revision(2);
  *desired.add_unwanted() = MakeAssignment(1, 4).attempt();
  reconciler_.SetDesired(desired);
  const auto actions = Reconcile();
  EXPECT_THAT(actions.cancel, ElementsAre(Id(1, 4)));
  EXPECT_THAT(actions.disown, IsEmpty());
  reconciler_.OnEnded(Id(1, 4));
  EXPECT_THAT(Reconcile().disown, IsEmpty());
}

TEST_F(ReconcilerTest, AbortsAGangThatFailedOnAnotherHost) {
  SetDesired({MakeAssignment(0, 1), MakeAssignment(1, 2)}, 1);
  v1::Desired desired;
  desired.set_revision(2);
  for (const v1::Assignment& each : {MakeAssignment(0, 1), MakeAssignment(1, 2)})
    *desired.add_unwanted() = each.attempt();
  *desired.add_failed_elsewhere() = MakeAssignment(1, 2).attempt();
  reconciler_.SetDesired(desired);
  const auto actions = Reconcile();
  EXPECT_THAT(actions.cancel, ElementsAre(Id(0, 1)));
  EXPECT_THAT(actions.abort, ElementsAre(Id(1, 2)));
}

TEST_F(ReconcilerTest, StartsNothingAfterForgetDesired) {
  SetDesired({MakeAssignment(0, 1, {0})}, 1);
  SetDesired({MakeAssignment(1, 1, {0})}, 2);  // waits for the GPU
  EXPECT_THAT(reconciler_.CancelAll(), IsEmpty());
  reconciler_.ForgetDesired();
  reconciler_.OnEnded(Id(0, 1));
  Reconcile();
  EXPECT_THAT(started_, IsEmpty());
  EXPECT_FALSE(reconciler_.has_live());
}

TEST_F(ReconcilerTest, RanksWithoutRankZeroStartWhenTheRendezvousIsKnown) {
  v1::Assignment part = MakeAssignment(0, 1);
  part.mutable_ranks(0)->set_rank(2);
  SetDesired({part}, 1);
  EXPECT_THAT(started_, IsEmpty());
  part.mutable_rendezvous()->set_address("10.0.0.3");
  part.mutable_rendezvous()->set_master_port(4000);
  EXPECT_THAT(SetDesired({part}, 2).set_rendezvous, IsEmpty())
      << "rank 0 has not said where it listens";
  EXPECT_THAT(started_, ElementsAre(Id(0, 1)));
  part.mutable_rendezvous()->set_host("10.0.0.3");
  part.mutable_rendezvous()->set_port(4001);
  const auto actions = SetDesired({part}, 3);
  EXPECT_THAT(started_, IsEmpty());
  ASSERT_THAT(actions.set_rendezvous, SizeIs(1));
  EXPECT_EQ(actions.set_rendezvous[0].second.port, 4001);
}

TEST_F(ReconcilerTest, TellsLaggardsWhenRankZerosHostHasFinished) {
  v1::Assignment part = MakeAssignment(0, 1);
  part.mutable_ranks(0)->set_rank(2);
  part.mutable_rendezvous()->set_address("10.0.0.3");
  EXPECT_THAT(SetDesired({part}, 1).peers_finished, IsEmpty());
  part.set_rank_zero_finished(true);
  EXPECT_THAT(SetDesired({part}, 2).peers_finished, SizeIs(1));
}

TEST_F(ReconcilerTest, DoesNotTellRankZerosExecutorWhereItListens) {
  v1::Assignment part = MakeAssignment(0, 1);
  part.mutable_rendezvous()->set_host("10.0.0.3");
  part.mutable_rendezvous()->set_port(4001);
  EXPECT_THAT(SetDesired({part}, 1).set_rendezvous, IsEmpty());
  EXPECT_THAT(started_, ElementsAre(Id(0, 1)));
}

}  // namespace
}  // namespace attune::agent
