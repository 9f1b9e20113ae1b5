#include "server/rpc/sessions.h"

#include "tests/unit/server/rpc/sessions_fixture.h"

namespace attune::server {
namespace {

using ::testing::SizeIs;

// ---- Reachable executors ---------------------------------------------------------------------

TEST_F(SessionsTest, NothingIsReachableAfterAStartUntilAllExecutorsAreBack) {
  server->Join("first");
  server->Join("second");
  Restart();
  server->Start();
  const auto first = server->Join("first");
  Create();
  EXPECT_TRUE(server->sessions.Connected("first"));
  EXPECT_FALSE(server->sessions.ReachOf("first").takes);
  EXPECT_EQ(first->desired().assignments_size(), 0);
  const auto second = server->Join("second");
  EXPECT_TRUE(server->sessions.ReachOf("first").takes);
  EXPECT_EQ(first->desired().assignments_size() + second->desired().assignments_size(), 4);
}

// The first gang of a sweep marks the sweep's folder with the identity. A gang with another
// identity would set the folder aside.
TEST_F(SessionsTest, NothingIsReachableBeforeTheLogHasItsFirstIdentity) {
  Restart();
  server->awaits_identity = true;
  server->Start();
  Create();
  const auto link = server->Join("box");
  EXPECT_TRUE(link->welcomed()) << "the executor keeps its lease";
  EXPECT_FALSE(server->sessions.ReachOf("box").takes);
  EXPECT_TRUE(link->MessagesOf(v1::ToExecutor::kDesired).empty());
  server->Do(IdentifyLog{LogIdentity(0), LogIdentity(7), ""});
  server->Run();
  ASSERT_EQ(link->desired().assignments_size(), 2) << "the log was not restored";
  EXPECT_EQ(link->desired().assignments(0).identity(), 7u);
}

TEST_F(SessionsTest, NothingIsReachableForOneLeaseIfAnExecutorStaysAway) {
  server->Join("first");
  server->Join("second");
  Restart();
  server->Start();
  const auto first = server->Join("first");
  server->AdvanceTime(kPatienceUs);
  server->SendHeartbeat(*first);
  EXPECT_FALSE(server->sessions.ReachOf("first").takes);
  server->AdvanceTime(1);
  EXPECT_TRUE(server->sessions.ReachOf("first").takes);
}

TEST_F(SessionsTest, LabelsAreRecordedAndInvalidLabelsAreRefused) {
  auto hello = MakeHello("box", "a");
  (*hello.mutable_labels())["gpu"] = "h100";
  const auto link = server->Connect(hello);
  server->Run();
  EXPECT_EQ(server->state().executors.at("box").host.labels, (Labels{{"gpu", "h100"}}));
  (*hello.mutable_labels())["a b"] = "c";
  hello.set_instance("b");
  const auto wrong = server->Connect(hello);
  ASSERT_TRUE(wrong->sent.back().has_refusal());
  EXPECT_EQ(wrong->sent.back().refusal().code(), v1::Refusal::BAD_HELLO);
}

TEST_F(SessionsTest, TheSilenceOfAConnectedExecutorIsMeasured) {
  const auto link = server->Join("box");
  EXPECT_EQ(server->sessions.PulseOf("box", now)->silent_us, 0);
  EXPECT_EQ(server->sessions.PulseOf("box", Time{now.us + 7})->silent_us, 7);
  EXPECT_FALSE(server->sessions.PulseOf("other", now));
  server->sessions.OnClosed(link->id);
  EXPECT_FALSE(server->sessions.PulseOf("box", now));
}

TEST_F(SessionsTest, AnExecutorThatSaidGoodbyeNeitherSendsNorReceives) {
  const auto link = server->Join("box");
  EXPECT_TRUE(server->sessions.ReachOf("box").takes);
  server->sessions.OnGoodbye(link->id, {});
  EXPECT_TRUE(server->sessions.Connected("box"));
  EXPECT_FALSE(server->sessions.ReachOf("box").takes);
  EXPECT_TRUE(server->sessions.ReachOf("box").sends);
}

TEST_F(SessionsTest, AStayingExecutorIsReleasedWhenNotNeeded) {
  v1::Hello own = MakeHello("own", "a");
  own.set_folder("of own");
  const auto link = server->Connect(own);
  server->Run();
  SweepSpec spec = attune::testing::ToySpec();
  spec.stop.max_trials = 1;
  server->Do(CreateSweep{spec, "text", ""});
  const Trial& trial = server->state().sweeps.begin()->second.trials.begin()->second;
  const Attempt live = *trial.live;
  ASSERT_EQ(live.ranks[0].executor, "own");
  server->Do(RecordFact{live.epoch, CheckpointSaved{live.id, {Step(1), "/own/1", "sha256:"}, 1}});
  server->Do(RecordFact{live.epoch,
                        TrialReported{live.id, {.step = Step(1), .metrics = {{"score", 0.5}}}}});
  v1::Hello other = MakeHello("other", "a");
  other.set_folder("of other");
  const auto there = server->Connect(other);
  server->Run();
  v1::Goodbye goodbye;
  goodbye.set_saves(true);
  server->sessions.OnGoodbye(link->id, goodbye);
  server->Run();
  server->Do(RecordFact{live.epoch, AttemptEnded{live.id, Outcome::kKilled, {}}});
  const Attempt next = *trial.live;
  ASSERT_EQ(next.ranks[0].executor, "other");
  goodbye.set_saves(false);
  goodbye.set_stays(true);
  server->sessions.OnGoodbye(link->id, goodbye);
  server->Run();
  EXPECT_FALSE(link->released()) << "the other executor fetches the checkpoint";
  server->Do(RecordFact{next.epoch, AttemptStarted{next.id, {7}}});
  EXPECT_TRUE(link->released());
}

TEST_F(SessionsTest, AnExecutorWithTemporaryDataStaysForExecutorsThatJoinLater) {
  for (const bool temporary : {false, true}) {
    SCOPED_TRACE(temporary);
    const std::string name = temporary ? "pod" : "host";
    v1::Hello own = MakeHello(name, "a");
    own.set_folder("of " + name);
    own.set_temporary_data(temporary);
    const auto link = server->Connect(own);
    server->Run();
    SweepSpec spec = attune::testing::ToySpec();
    spec.stop.max_trials = 1;
    server->Do(CreateSweep{spec, "text", ""});
    const Trial& trial = server->state().sweeps.rbegin()->second.trials.begin()->second;
    const Attempt live = *trial.live;
    server->Do(RecordFact{live.epoch, CheckpointSaved{live.id, {Step(1), "/1", "sha256:"}, 1}});
    server->Do(RecordFact{live.epoch,
                          TrialReported{live.id, {.step = Step(1), .metrics = {{"score", 0.5}}}}});
    v1::Goodbye goodbye;
    goodbye.set_saves(true);
    server->sessions.OnGoodbye(link->id, goodbye);
    server->Run();
    server->Do(RecordFact{live.epoch, AttemptEnded{live.id, Outcome::kKilled, {}}});
    ASSERT_FALSE(trial.live) << "no other executor";
    goodbye.set_saves(false);
    goodbye.set_stays(true);
    server->sessions.OnGoodbye(link->id, goodbye);
    server->Run();
    EXPECT_EQ(link->released(), !temporary);
    if (!temporary) continue;
    v1::Hello other = MakeHello("other", "a");
    other.set_folder("of other");
    const auto there = server->Connect(other);
    server->Run();
    const Attempt next = *trial.live;
    EXPECT_FALSE(link->released()) << "the other executor fetches the checkpoint";
    server->Do(RecordFact{next.epoch, AttemptStarted{next.id, {7}}});
    EXPECT_TRUE(link->released());
  }
}

TEST_F(SessionsTest, AnUnneededStayingExecutorIsReleasedAtOnce) {
  const auto link = server->Join("box");
  v1::Goodbye goodbye;
  goodbye.set_stays(true);
  server->sessions.OnGoodbye(link->id, goodbye);
  server->Run();
  EXPECT_TRUE(link->released());
}

// ---- Health and heartbeats -------------------------------------------------------------------

class HealthTest : public SessionsTest {
 protected:
  void ReportProblem(FakeLink& link, const std::string& problem) {
    v1::Health health;
    health.set_problem(problem);
    server->sessions.OnHealth(link.id, health);
  }
  std::string Problem() { return server->state().executors.at("box").problem; }
};

TEST_F(HealthTest, NothingIsPlacedOnAnUnhealthyExecutor) {
  const auto link = server->Join("box");
  ReportProblem(*link, "its disk is full");
  Create();
  EXPECT_EQ(Problem(), "its disk is full");
  EXPECT_EQ(link->desired().assignments_size(), 0);
  ReportProblem(*link, "");
  server->Run();
  EXPECT_GT(link->desired().assignments_size(), 0);
}

TEST_F(HealthTest, AReportDuringTheStartCountsAfterTheJoin) {
  server->Join("box");
  Restart();
  const auto link = server->Connect(MakeHello("box", "a"));
  ReportProblem(*link, "its disk is full");
  server->Start();
  EXPECT_EQ(Problem(), "its disk is full");
}

TEST_F(HealthTest, AReportThatTheStoreRefusesIsRequestedAgain) {
  const auto link = server->Join("box");
  FillAndTry();
  ReportProblem(*link, "its disk is full");
  server->Run();
  EXPECT_EQ(Problem(), "");
  FreeStorage();
  EXPECT_TRUE(link->closed) << "the executor repeats the message after it reconnects";
}

TEST_F(HealthTest, TheLastHeartbeatIsKnownWhileConnected) {
  const auto link = server->Join("box");
  v1::Heartbeat heartbeat;
  heartbeat.set_time_us(now.us);
  heartbeat.set_disk_free_bytes(7);
  heartbeat.set_memory_free_bytes(9);
  server->sessions.OnHeartbeat(link->id, heartbeat, now);
  EXPECT_EQ(server->sessions.PulseOf("box", now)->disk_free_bytes, 7);
  EXPECT_EQ(server->sessions.PulseOf("box", now)->memory_free_bytes, 9);
}

}  // namespace
}  // namespace attune::server
