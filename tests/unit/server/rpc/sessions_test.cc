#include "server/rpc/sessions.h"

#include "tests/unit/server/rpc/sessions_fixture.h"

namespace attune::server {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// ---- Leases do not depend on the log ---------------------------------------------------------

TEST_F(SessionsTest, AKnownExecutorIsWelcomedWhileTheStoreRefuses) {
  server->sessions.OnClosed(server->Join("box")->id);
  FillAndTry();
  const auto link = server->Connect(MakeHello("box", "a"));
  EXPECT_TRUE(link->welcomed());
  server->Run();
  EXPECT_FALSE(link->closed);
  EXPECT_THAT(link->MessagesOf(v1::ToExecutor::kDesired), SizeIs(1));
}

TEST_F(SessionsTest, AnUnknownExecutorNeedsTheStoreToJoin) {
  FillAndTry();
  const auto link = server->Join("box");
  EXPECT_FALSE(link->welcomed());
  EXPECT_EQ(link->refusal().code(), v1::Refusal::BUSY);
  EXPECT_THAT(link->refusal().message(), HasSubstr("disk"));
}

TEST_F(SessionsTest, OnlyHeartbeatsAreAnsweredWhileTheStoreRefuses) {
  const auto link = server->Join("box");
  FillAndTry();
  server->SendStoredFact(*link, 1);
  server->Run();
  now.us += 5;
  server->SendHeartbeat(*link);
  EXPECT_EQ(link->MessagesOf(v1::ToExecutor::kAck).back().ack().heartbeat_us(), now.us);
  EXPECT_EQ(link->acknowledged(), 0u);
  EXPECT_FALSE(link->closed);
}

TEST_F(SessionsTest, FactsAfterDroppedOnesAreNotAcknowledged) {
  const auto link = server->Join("box");
  FillAndTry();
  server->SendStoredFact(*link, 1);
  server->Run();
  FreeStorage();
  EXPECT_EQ(link->acknowledged(), 0u);
  EXPECT_TRUE(link->closed);
  EXPECT_THAT(link->refusal().message(), HasSubstr("connect again"));
  server->sessions.OnClosed(link->id);
  const auto again = server->Join("box");
  server->SendRemoval(*again, 2);
  server->Run();
  EXPECT_EQ(again->acknowledged(), 2u);
}

TEST_F(SessionsTest, ASilentExecutorStaysConnectedWhileTheStoreRefuses) {
  const auto link = server->Join("box");
  FillAndTry();
  server->SendHeartbeat(*link);
  FreeStorage();
  EXPECT_FALSE(link->closed);
}

// ---- While the log is read -------------------------------------------------------------------

TEST_F(SessionsTest, ExecutorsAreOnlyWelcomedAndAnsweredWhileTheLogIsRead) {
  Create();
  server->Join("box");
  Restart();
  const auto link = server->Connect(MakeHello("box", "a"));
  server->SendHeartbeat(*link);
  EXPECT_TRUE(link->welcomed());
  EXPECT_THAT(link->MessagesOf(v1::ToExecutor::kAck), SizeIs(1));
  EXPECT_THAT(link->MessagesOf(v1::ToExecutor::kDesired), SizeIs(0));
  server->Start();
  EXPECT_EQ(link->desired().assignments_size(), 2);
  EXPECT_FALSE(link->closed);
  EXPECT_THAT(link->MessagesOf(v1::ToExecutor::kWelcome), SizeIs(1));
}

TEST_F(SessionsTest, FactsReceivedWhileTheLogIsReadAreRequestedAgain) {
  server->Join("box");
  Restart();
  const auto link = server->Connect(MakeHello("box", "a"));
  server->SendRemoval(*link, 1);
  server->Start();
  EXPECT_EQ(link->acknowledged(), 0u);
  EXPECT_TRUE(link->closed);
}

TEST_F(SessionsTest, AnUnknownExecutorJoinsOnceTheLogHasBeenRead) {
  Restart();
  const auto link = server->Connect(MakeHello("box", "a"));
  EXPECT_TRUE(store.events.empty());
  server->Start();
  EXPECT_TRUE(server->sessions.Connected("box"));
  EXPECT_FALSE(Lost("box"));
}

TEST_F(SessionsTest, LeasesBeginOnceTheLogHasBeenRead) {
  server->Join("box");
  Restart();
  server->AdvanceTime(10 * kPatienceUs);
  server->Start();
  server->AdvanceTime(kPatienceUs);
  server->Run();
  EXPECT_FALSE(Lost("box"));
  server->AdvanceTime(1);
  server->Run();
  EXPECT_TRUE(Lost("box"));
}

// ---- Lost executors and dead processes -------------------------------------------------------

TEST_F(SessionsTest, AnExecutorThatReconnectsDuringItsLossJoinsAgain) {
  server->sessions.OnClosed(server->Join("box")->id);
  server->AdvanceTime(kPatienceUs + 1);                      // the loss is decided in the next step
  const auto link = server->Connect(MakeHello("box", "a"));  // reconnects before that step
  server->Run();
  EXPECT_TRUE(server->sessions.Connected("box"));
  EXPECT_FALSE(Lost("box"));
  EXPECT_EQ(server->state().executors.at("box").incarnation, Incarnation{2});
  EXPECT_FALSE(link->closed);
}

TEST_F(SessionsTest, AConnectedExecutorThatIsLostInTheLogMustJoinAgain) {
  const auto link = server->Join("box");
  server->Do(LoseExecutor{"box", Incarnation{1}, "by somebody else"});
  EXPECT_TRUE(link->closed);
  EXPECT_FALSE(server->sessions.Connected("box"));
  server->Join("box");
  EXPECT_FALSE(Lost("box"));
}

TEST_F(SessionsTest, AnExecutorWhoseLossWasNotStoredIsStillKnown) {
  server->sessions.OnClosed(server->Join("box")->id);
  FillAndTry();
  server->AdvanceTime(kPatienceUs + 1);
  server->Run();
  const auto link = server->Connect(MakeHello("box", "a"));
  EXPECT_TRUE(link->welcomed());
}

TEST_F(SessionsTest, NoGangIsPlacedWhileTheStoreRefuses) {
  server->Join("box");
  ASSERT_TRUE(server->sessions.ReachOf("box").takes);
  FillAndTry();
  EXPECT_FALSE(server->sessions.ReachOf("box").takes);
  EXPECT_TRUE(server->sessions.ReachOf("box").sends);
  FreeStorage();
  EXPECT_TRUE(server->sessions.ReachOf("box").takes);
}

TEST_F(SessionsTest, TheEndOfAKilledGangIsStoredEvenAfterDroppedReports) {
  const auto link = server->Join("box");
  Create();
  store.reserve = 100;
  FillAndTry();
  const Trial& trial = *server->state().Find(SweepId(1))->Find(TrialNumber(0));
  const AttemptId attempt = trial.live->id;
  const Epoch epoch = trial.live->epoch;
  const auto say = [&](uint64_t seq, auto fact) {
    fact.attempt = attempt;
    server->sessions.OnFacts(
        link->id,
        {.commands = {RecordFact{.epoch = epoch, .fact = fact}}, .last = seq, .bytes = 100}, now);
    server->Run();
  };
  say(1, TrialReported{.report = {Step(1), {{"score", 0.5}}}});
  server->Do(KillSweep{SweepId(1)});
  say(2, AttemptEnded{.outcome = Outcome::kKilled});
  EXPECT_FALSE(server->state().Find(SweepId(1))->live.contains(TrialNumber(0)));
  EXPECT_EQ(link->acknowledged(), 0u);
}

TEST_F(SessionsTest, AHelloOfADeadProcessIsRefusedAfterThatOfItsSuccessor) {
  const auto next = server->Connect(MakeHello("box", "b", 200));
  server->Run();
  const auto dead = server->Connect(MakeHello("box", "a", 100));
  server->Run();
  EXPECT_EQ(dead->refusal().code(), v1::Refusal::SUPERSEDED);
  EXPECT_FALSE(next->closed);
  EXPECT_EQ(server->state().executors.at("box").instance, "b");
}

TEST_F(SessionsTest, AnEarlierProcessIsWelcomedOnceTheOtherIsSilent) {
  const auto first = server->Connect(MakeHello("box", "a", 200));
  server->Run();
  server->sessions.OnClosed(first->id);
  now.us += kPatienceUs + 1;
  const auto second = server->Connect(MakeHello("box", "b", 100));  // after the clock was set back
  server->Run();
  EXPECT_TRUE(second->welcomed());
}

TEST_F(SessionsTest, AnotherProcessOfTheSameNameSupersedesTheFirst) {
  const auto first = server->Join("box", "a");
  const auto second = server->Join("box", "b");
  EXPECT_EQ(first->refusal().code(), v1::Refusal::SUPERSEDED);
  EXPECT_TRUE(server->sessions.Connected("box"));
  EXPECT_FALSE(second->closed);
}

TEST_F(SessionsTest, ASecondConnectionOfAProcessTakesTheFirstsPlace) {
  const auto first = server->Join("box");
  const auto second = server->Join("box");
  EXPECT_TRUE(first->closed);
  server->sessions.OnClosed(first->id);
  EXPECT_TRUE(server->sessions.Connected("box"));
  EXPECT_EQ(server->sessions.LinkOf("box"), second.get());
}

// ---- Connections without hello ---------------------------------------------------------------

TEST_F(SessionsTest, AConnectionWithoutHelloFirstIsClosed) {
  const auto opened = [this] {
    auto link = std::make_unique<FakeLink>();
    link->id = server->sessions.OnOpened(*link, now);
    return link;
  };
  const auto leaving = opened();
  v1::Goodbye goodbye;
  goodbye.set_stays(true);
  server->sessions.OnGoodbye(leaving->id, goodbye);
  const auto unhealthy = opened();
  server->sessions.OnHealth(unhealthy->id, {});
  const auto other = opened();
  EXPECT_EQ(server->sessions.OnOtherMessage(other->id), "");
  for (const FakeLink* link : {leaving.get(), unhealthy.get(), other.get()}) {
    EXPECT_TRUE(link->closed);
    EXPECT_EQ(link->reads, 0);
  }
  EXPECT_TRUE(server->queue.empty());
  EXPECT_EQ(server->sessions.OnOtherMessage(server->Join("box")->id), "box");
}

TEST_F(SessionsTest, ASilentConnectionIsClosed) {
  const auto link = std::make_unique<FakeLink>();
  server->sessions.OnOpened(*link, now);
  server->AdvanceTime(kPatienceUs);
  EXPECT_FALSE(link->closed);
  server->AdvanceTime(1);
  EXPECT_TRUE(link->closed);
}

// ---- Leaving executors -----------------------------------------------------------------------

TEST_F(SessionsTest, GangsOfALeavingExecutorSaveOnceTheStoreCanWrite) {
  const auto link = server->Join("box");
  Create();
  FillAndTry();
  v1::Goodbye goodbye;
  goodbye.set_saves(true);
  server->sessions.OnGoodbye(link->id, goodbye);
  server->Run();
  EXPECT_FALSE(link->desired().assignments(0).yield());
  FreeStorage();
  EXPECT_TRUE(link->desired().assignments(0).yield());
  EXPECT_FALSE(link->closed);
}

// ---- Flow control ----------------------------------------------------------------------------

TEST_F(SessionsTest, AStreamIsReadWhileFewFactsWait) {
  const auto link = server->Join("box");
  const int before = link->reads;
  server->SendRemoval(*link, 1, kSessionBytesMax - 1);
  EXPECT_EQ(link->reads, before + 1);
}

TEST_F(SessionsTest, AStreamWithManyWaitingFactsIsReadOnceStored) {
  const auto link = server->Join("box");
  const int before = link->reads;
  server->SendRemoval(*link, 1, kSessionBytesMax);
  EXPECT_EQ(link->reads, before);
  server->Run();
  EXPECT_EQ(link->reads, before + 1);
}

TEST_F(SessionsTest, BeyondTheTotalLimitEachStreamIsReadOnce) {
  std::vector<std::unique_ptr<FakeLink>> links;
  size_t waits = 0;
  for (int i = 0; waits < kSessionsBytesMax; ++i) {
    links.push_back(server->Join("box-" + std::to_string(i)));
    waits += kSessionBytesMax - 1;
  }
  for (const auto& link : links) server->SendRemoval(*link, 1, kSessionBytesMax - 1);
  const auto last = server->Join("last");  // decides on the waiting facts
  std::vector<int> reads;
  for (const auto& link : links) reads.push_back(link->reads);
  EXPECT_THAT(reads, ::testing::Each(2));  // after its Hello and after its facts
}

TEST_F(SessionsTest, OneBatchPerSessionIsStoredAtATime) {
  const auto link = server->Join("box");
  FillAndTry();
  store.full.reset();
  server->SendStoredFact(*link, 1);
  server->SendStoredFact(*link, 2);
  server->Run();  // refuses the first batch; the store could be written by now
  now.us += kProbeIntervalUs;
  server->Run();
  EXPECT_EQ(link->acknowledged(), 0u);
  EXPECT_TRUE(link->closed);
}

TEST_F(SessionsTest, FactsThatArriveDuringAStoreFormOneBatch) {
  const auto link = server->Join("box");
  for (uint64_t seq = 1; seq <= 3; ++seq) server->SendRemoval(*link, seq);
  EXPECT_EQ(server->queue.TakeBatch().size(), 1u);  // the other two facts wait for it
}

TEST_F(SessionsTest, AStreamThatIsNotReadMayClose) {
  const auto link = server->Join("box");
  server->SendRemoval(*link, 1, kSessionBytesMax);
  server->sessions.OnClosed(link->id);
  server->Run();
  const auto again = server->Join("box");
  server->SendRemoval(*again, 1, kSessionBytesMax - 1);
  EXPECT_EQ(again->reads, 2);
}

// ---- Restored backups ------------------------------------------------------------------------

class RestoredSessions : public SessionsTest {
 protected:
  void SetUp() override {
    SessionsTest::SetUp();
    server->Do(IdentifyLog{LogIdentity(0), LogIdentity(7)});
    Create();
  }
  // The hello that the executor of this link sends to a later process.
  static v1::Hello Again(const FakeLink& link) {
    v1::Hello hello = MakeHello("box", "a");
    hello.set_identity(link.desired().identity());
    hello.set_log_seq(link.desired().log_seq());
    hello.set_server_run(link.desired().server_run());
    return hello;
  }
  // The server restarts with a log that ends here.
  void Restore(EventSeq last) {
    store.events.resize(last.value);
    store.snapshots.clear();
    Restart();
    server->Start();
  }
};

TEST_F(RestoredSessions, AnExecutorThatKnowsLaterEventsCausesANewIdentity) {
  const EventSeq backup = store.LastSeq();
  const auto link = server->Join("box");
  ASSERT_EQ(link->desired().assignments_size(), 2);
  Restore(backup);
  const auto again = server->Connect(Again(*link));
  server->Run();
  ASSERT_THAT(server->state().parts, SizeIs(2));
  EXPECT_TRUE(again->welcomed());
  EXPECT_EQ(again->desired().identity(), IdentityOf(server->state()).value);
  EXPECT_GT(again->desired().last_epoch(), link->desired().assignments(1).attempt().epoch());
  EXPECT_EQ(again->desired().assignments_size(), 0)
      << "other executors may run attempts that the log has lost";
  server->AdvanceTime(kPatienceUs);
  server->SendHeartbeat(*again);
  server->AdvanceTime(1);
  server->Run();
  EXPECT_EQ(again->desired().assignments_size(), 2);
}

// The disk may be full meanwhile.
TEST_F(RestoredSessions, ExecutorsLearnOfARestoredLogOnceItHasItsIdentity) {
  const auto link = server->Join("box");
  ASSERT_EQ(link->desired().assignments_size(), 2);
  Restart();
  server->awaits_identity = true;
  server->Start();
  v1::Hello hello = Again(*link);
  hello.set_identity(1);  // of a log that no longer exists
  const auto again = server->Connect(hello);
  server->Run();
  EXPECT_TRUE(again->MessagesOf(v1::ToExecutor::kDesired).empty());
  server->Do(IdentifyLog{LogIdentity(7), LogIdentity(8), "a backup was restored"});
  server->Run();
  ASSERT_FALSE(again->MessagesOf(v1::ToExecutor::kDesired).empty());
  EXPECT_EQ(again->desired().identity(), 8u);
}

TEST_F(RestoredSessions, AServerThatRestartsSoonAfterARestoreWaitsToo) {
  const EventSeq backup = store.LastSeq();
  const auto link = server->Join("box");
  Restore(backup);
  const auto again = server->Connect(Again(*link));
  server->Run();
  ASSERT_TRUE(again->welcomed());
  Restart();
  server->Start();
  const auto last = server->Connect(Again(*again));
  server->Run();
  ASSERT_TRUE(last->welcomed());
  EXPECT_EQ(last->desired().assignments_size(), 0)
      << "other executors may run attempts that the log has lost";
  server->AdvanceTime(kPatienceUs);
  server->SendHeartbeat(*last);
  server->AdvanceTime(1);
  server->Run();
  EXPECT_EQ(last->desired().assignments_size(), 2);
}

TEST_F(RestoredSessions, EventsOfThisRunDoNotIndicateARestore) {
  const auto link = server->Join("box");
  Create();
  server->sessions.OnClosed(link->id);
  server->Connect(Again(*link));
  server->Run();
  EXPECT_THAT(server->state().parts, SizeIs(1));
}

TEST_F(RestoredSessions, FilesOfAnUnknownSweepIndicateARestore) {
  v1::Hello hello = MakeHello("box", "a");
  Add({SweepId(1), LogIdentity(7)}, *hello.mutable_sweeps());
  Add({SweepId(2), LogIdentity(7)}, *hello.mutable_sweeps());
  Add({SweepId(3), LogIdentity(99)}, *hello.mutable_sweeps());  // a sweep of another server
  const auto link = server->Connect(hello);
  server->Run();
  EXPECT_THAT(server->state().parts, SizeIs(2));
  ASSERT_EQ(link->desired().lost_sweeps_size(), 1);
  EXPECT_EQ(link->desired().lost_sweeps(0).identity(), 7u);
  EXPECT_EQ(link->desired().lost_sweeps(0).sweeps_size(), 1);
  EXPECT_EQ(link->desired().lost_sweeps(0).sweeps(0), 2u);
}

TEST_F(RestoredSessions, ANewIdentityComesWithAnInventory) {
  const auto link = server->Join("box");
  const v1::AttemptRef attempt = link->desired().assignments(0).attempt();
  const AttemptId id = FromProto(attempt);
  const CheckpointSaved saved{id, {Step(1), "/s1/step-1-attempt-1", "sha256:"}, 5};
  server->Do(RecordFact{Epoch(attempt.epoch()), saved, "box"});
  server->Do(IdentifyLog{LogIdentity(7), LogIdentity(8), "a backup was restored"});
  const auto inventories = link->MessagesOf(v1::ToExecutor::kInventory);
  ASSERT_THAT(inventories, SizeIs(1));
  EXPECT_EQ(inventories[0].inventory().checkpoints(0).step(), 1);
  for (const uint64_t seen : {8, 7}) {
    v1::Hello hello = Again(*link);
    hello.set_identity(seen);
    const auto again = server->Connect(hello);
    server->Run();
    EXPECT_THAT(again->MessagesOf(v1::ToExecutor::kInventory), SizeIs(seen == 7 ? 1 : 0));
    server->sessions.OnClosed(again->id);
  }
  // Another process of the executor. It must get the inventory before it learns the identity,
  // because it gets none afterwards.
  v1::Hello hello = Again(*link);
  hello.set_instance("b");
  hello.set_identity(7);
  const auto other = server->Connect(hello);
  server->Run();
  const auto first = [&](v1::ToExecutor::MessageCase kind) {
    return std::ranges::find(other->sent, kind, &v1::ToExecutor::message_case);
  };
  ASSERT_NE(first(v1::ToExecutor::kInventory), other->sent.end());
  EXPECT_LT(first(v1::ToExecutor::kInventory), first(v1::ToExecutor::kDesired));
}

TEST_F(RestoredSessions, AnAttemptLearnsWhichCheckpointsTheLogKnows) {
  const auto link = server->Join("box");
  EXPECT_FALSE(link->desired().assignments(0).has_known());
  EXPECT_EQ(link->desired().assignments(0).identity(), 7u);
  server->Do(IdentifyLog{LogIdentity(7), LogIdentity(8), "a backup was restored"});
  EXPECT_FALSE(link->desired().assignments(0).has_known())
      << "the attempt runs already, or will not start";
  server->AdvanceTime(kPatienceUs);
  server->SendHeartbeat(*link);
  server->AdvanceTime(1);
  const v1::AttemptRef attempt = link->desired().assignments(0).attempt();
  server->Do(RecordFact{Epoch(attempt.epoch()),
                        AttemptEnded{FromProto(attempt), Outcome::kLost, {}}, "box"});
  const v1::Desired desired = link->desired();
  const auto next = std::ranges::find(desired.assignments(), 2u, [](const v1::Assignment& each) {
    return each.attempt().attempt();
  });
  ASSERT_NE(next, desired.assignments().end());
  EXPECT_EQ(next->identity(), 7u);
  ASSERT_TRUE(next->has_known());
  EXPECT_EQ(next->known().attempts(), 1u);
}

}  // namespace
}  // namespace attune::server
