#include "server/rpc/sessions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "server/conductor/conductor_machine.h"
#include "tests/support/memory_store.h"
#include "tests/support/toy_algorithms.h"

namespace attune::server {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr int64_t kSecondUs = 1'000'000;
constexpr int64_t kLeaseUs = 20 * kSecondUs;
constexpr int64_t kPatienceUs = 30 * kSecondUs;

class FakeLink final : public ExecutorLink {
 public:
  void Send(v1::ToExecutor message) override { sent.push_back(std::move(message)); }
  void Close() override { closed = true; }
  void ReadOn() override { ++reads; }

  std::vector<v1::ToExecutor> All(v1::ToExecutor::MessageCase kind) const {
    std::vector<v1::ToExecutor> found;
    for (const v1::ToExecutor& message : sent) {
      if (message.message_case() == kind) found.push_back(message);
    }
    return found;
  }
  bool released() const { return !All(v1::ToExecutor::kReleased).empty(); }
  bool welcomed() const { return !All(v1::ToExecutor::kWelcome).empty(); }
  v1::Refusal refusal() const {
    const auto all = All(v1::ToExecutor::kRefusal);
    return all.empty() ? v1::Refusal() : all.front().refusal();
  }
  v1::Desired desired() const { return All(v1::ToExecutor::kDesired).back().desired(); }
  uint64_t acknowledged() const {
    const auto all = All(v1::ToExecutor::kAck);
    return all.empty() ? 0 : all.back().ack().seq();
  }

  std::vector<v1::ToExecutor> sent;
  bool closed = false;
  int reads = 0;
  SessionId id = 0;
};

v1::Hello MakeHello(const std::string& name, const std::string& instance, int64_t started_us = 0) {
  v1::Hello hello;
  hello.set_protocol(v1::PROTOCOL_CURRENT);
  hello.set_token("secret");
  hello.set_name(name);
  hello.set_instance(instance);
  hello.set_started_us(started_us);
  hello.mutable_resources()->set_cpus(2);
  return hello;
}

// One process of a server: sessions and the conductor's machine, stepped by the test.
class Server final : private Submissions, private Listener {
 public:
  Server(const Algorithms& algorithms, EventStore& store, Time& now)
      : now_(now),
        machine({.make_mind =
                     [&, this] {
                       return MakeBrainMind(algorithms, [this](const std::string& name) {
                         return sessions.ReachOf(name);
                       });
                     },
                 .store = &store}) {
    machine.Subscribe(this);
  }

  void Start() {
    ASSERT_TRUE(machine.Start(now_, {}).ok());
    Run();
  }
  // Until nothing is left to do at this instant.
  void Run() {
    do {
      ASSERT_TRUE(machine.Step(queue.TakeBatch(), now_).ok());
    } while (!queue.empty());
  }
  void Do(Command command) {
    Submit(std::move(command), {});
    Run();
  }

  std::unique_ptr<FakeLink> Connect(const v1::Hello& hello) {
    auto link = std::make_unique<FakeLink>();
    link->id = sessions.OnOpened(*link);
    sessions.OnHello(link->id, hello, now_);
    return link;
  }
  std::unique_ptr<FakeLink> Join(const std::string& name, const std::string& instance = "a") {
    auto link = Connect(MakeHello(name, instance));
    Run();
    return link;
  }
  void Beat(FakeLink& link) {
    v1::Heartbeat heartbeat;
    heartbeat.set_time_us(now_.us);
    sessions.OnHeartbeat(link.id, heartbeat, now_);
  }
  void SayRemoved(FakeLink& link, uint64_t seq, size_t bytes = 100) {
    sessions.OnFacts(link.id, {.commands = {}, .last = seq, .bytes = bytes}, now_);
  }
  void Pass(int64_t us) {
    now_.us += us;
    sessions.OnTime(now_);
  }
  const State& state() const { return machine.brain().state(); }

 private:
  void Submit(Command command, Done done) override {
    Submission submission{.done = std::move(done)};
    submission.commands.push_back(std::move(command));
    queue.Push(std::move(submission));
  }
  void Record(std::vector<Command> facts, Stored stored) override {
    queue.Push({.commands = std::move(facts), .stored = std::move(stored)});
  }
  void Post(Look look) override { queue.Push({.look = std::move(look)}); }
  void Nudge() override { queue.Push({}); }

  void OnStarted(const Brain& brain) override { sessions.OnStarted(brain, now_); }
  void OnState(EventSeq, const Status& writable) override { sessions.OnState(writable); }
  void OnDurable(std::span<const Event> events, const Brain& brain) override {
    sessions.OnDurable(events, brain);
  }

  Time& now_;

 public:
  Queue queue;
  Sessions sessions{*this,
                    {.token = "secret", .lease_ttl_us = kLeaseUs, .patience_us = kPatienceUs}};
  ConductorMachine machine;
};

class SessionsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Restart();
    server->Start();
  }
  // Another process, which has not read its log yet.
  void Restart() { server = std::make_unique<Server>(algorithms, store, now); }
  void Fill() { store.full = Error{ErrorCode::kStorageFull, "the disk is full"}; }
  // Makes the server notice.
  void FillAndTry() {
    Fill();
    server->Do(CreateSweep{attune::testing::ToySpec(), "text", ""});
  }
  void Free() {
    store.full.reset();
    now.us += kProbeIntervalUs;
    server->Run();
  }
  void Create() { server->Do(CreateSweep{attune::testing::ToySpec(), "text", ""}); }
  bool Lost(const std::string& name) { return server->state().executors.at(name).lost; }

  Time now{1'000'000'000};
  attune::testing::MemoryStore store;
  const Algorithms algorithms = attune::testing::ToyAlgorithms();
  std::unique_ptr<Server> server;
};

// ---- leases are no matter of the log ---------------------------------------------------------

TEST_F(SessionsTest, AnExecutorThatTheLogKnowsIsWelcomedWhileTheStoreRefuses) {
  server->sessions.OnClosed(server->Join("box")->id);
  FillAndTry();
  const auto link = server->Connect(MakeHello("box", "a"));
  EXPECT_TRUE(link->welcomed());
  server->Run();
  EXPECT_FALSE(link->closed);
  EXPECT_THAT(link->All(v1::ToExecutor::kDesired), SizeIs(1));
}

TEST_F(SessionsTest, AnUnknownExecutorNeedsTheStoreToJoin) {
  FillAndTry();
  const auto link = server->Join("box");
  EXPECT_FALSE(link->welcomed());
  EXPECT_EQ(link->refusal().code(), v1::Refusal::BUSY);
  EXPECT_THAT(link->refusal().message(), HasSubstr("disk is full"));
}

TEST_F(SessionsTest, HeartbeatsAreAnsweredAndFactsAreNotWhileTheStoreRefuses) {
  const auto link = server->Join("box");
  FillAndTry();
  server->SayRemoved(*link, 1);
  server->Run();
  now.us += 5;
  server->Beat(*link);
  EXPECT_EQ(link->All(v1::ToExecutor::kAck).back().ack().heartbeat_us(), now.us);
  EXPECT_EQ(link->acknowledged(), 0u);
  EXPECT_FALSE(link->closed);
}

TEST_F(SessionsTest, WhatFollowsDroppedFactsIsNotAcknowledgedAndAllIsAskedForOnceThereIsSpace) {
  const auto link = server->Join("box");
  FillAndTry();
  server->SayRemoved(*link, 1);
  server->Run();
  Free();
  EXPECT_EQ(link->acknowledged(), 0u);
  EXPECT_TRUE(link->closed);
  EXPECT_THAT(link->refusal().message(), HasSubstr("connect again"));
  server->sessions.OnClosed(link->id);
  const auto again = server->Join("box");
  server->SayRemoved(*again, 2);
  server->Run();
  EXPECT_EQ(again->acknowledged(), 2u);
}

TEST_F(SessionsTest, AnExecutorThatSaidNothingWhileTheStoreRefusedStaysConnected) {
  const auto link = server->Join("box");
  FillAndTry();
  server->Beat(*link);
  Free();
  EXPECT_FALSE(link->closed);
}

// ---- while the log is being read -------------------------------------------------------------

TEST_F(SessionsTest, WhileTheLogIsReadExecutorsAreWelcomedAnsweredAndToldNothingElse) {
  Create();
  server->Join("box");
  Restart();
  const auto link = server->Connect(MakeHello("box", "a"));
  server->Beat(*link);
  EXPECT_TRUE(link->welcomed());
  EXPECT_THAT(link->All(v1::ToExecutor::kAck), SizeIs(1));
  EXPECT_THAT(link->All(v1::ToExecutor::kDesired), SizeIs(0));
  server->Start();
  EXPECT_EQ(link->desired().assignments_size(), 2);
  EXPECT_FALSE(link->closed);
  EXPECT_THAT(link->All(v1::ToExecutor::kWelcome), SizeIs(1));
}

TEST_F(SessionsTest, FactsThatCameWhileTheLogWasReadAreAskedForAgain) {
  server->Join("box");
  Restart();
  const auto link = server->Connect(MakeHello("box", "a"));
  server->SayRemoved(*link, 1);
  server->Start();
  EXPECT_EQ(link->acknowledged(), 0u);
  EXPECT_TRUE(link->closed);
}

TEST_F(SessionsTest, AnExecutorThatTheLogDoesNotKnowJoinsOnceItHasBeenRead) {
  Restart();
  const auto link = server->Connect(MakeHello("box", "a"));
  EXPECT_TRUE(store.events.empty());
  server->Start();
  EXPECT_TRUE(server->sessions.Connected("box"));
  EXPECT_FALSE(Lost("box"));
}

TEST_F(SessionsTest, LeasesCountFromWhenTheLogHasBeenRead) {
  server->Join("box");
  Restart();
  server->Pass(10 * kPatienceUs);
  server->Start();
  server->Pass(kPatienceUs);
  server->Run();
  EXPECT_FALSE(Lost("box"));
  server->Pass(1);
  server->Run();
  EXPECT_TRUE(Lost("box"));
}

// ---- what is reachable -----------------------------------------------------------------------

TEST_F(SessionsTest, NothingIsReachableAfterAStartUntilAllThatAreNotLostAreBack) {
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

TEST_F(SessionsTest, NothingIsReachableAfterAStartBeforeALeaseHasPassedForThoseThatStayAway) {
  server->Join("first");
  server->Join("second");
  Restart();
  server->Start();
  const auto first = server->Join("first");
  server->Pass(kPatienceUs);
  server->Beat(*first);
  EXPECT_FALSE(server->sessions.ReachOf("first").takes);
  server->Pass(1);
  EXPECT_TRUE(server->sessions.ReachOf("first").takes);
}

TEST_F(SessionsTest, LabelsJoinWithTheExecutorAndWrongOnesAreRefused) {
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

TEST_F(SessionsTest, HowLongAnExecutorIsSilentIsKnownWhileItIsConnected) {
  const auto link = server->Join("box");
  EXPECT_EQ(server->sessions.PulseOf("box", now)->silent_us, 0);
  EXPECT_EQ(server->sessions.PulseOf("box", Time{now.us + 7})->silent_us, 7);
  EXPECT_FALSE(server->sessions.PulseOf("other", now));
  server->sessions.OnClosed(link->id);
  EXPECT_FALSE(server->sessions.PulseOf("box", now));
}

TEST_F(SessionsTest, AnExecutorThatSaidGoodbyeSendsAndTakesNothingMore) {
  const auto link = server->Join("box");
  EXPECT_TRUE(server->sessions.ReachOf("box").takes);
  server->sessions.OnGoodbye(link->id, {});
  EXPECT_TRUE(server->sessions.Connected("box"));
  EXPECT_FALSE(server->sessions.ReachOf("box").takes);
  EXPECT_TRUE(server->sessions.ReachOf("box").sends);
}

TEST_F(SessionsTest, WhoStaysIsReleasedOnceNobodyNeedsItsCheckpoints) {
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
  EXPECT_FALSE(link->released()) << "the other one fetches it";
  server->Do(RecordFact{next.epoch, AttemptStarted{next.id, {7}}});
  EXPECT_TRUE(link->released());
}

TEST_F(SessionsTest, WhoStaysInVainIsReleasedAtOnce) {
  const auto link = server->Join("box");
  v1::Goodbye goodbye;
  goodbye.set_stays(true);
  server->sessions.OnGoodbye(link->id, goodbye);
  server->Run();
  EXPECT_TRUE(link->released());
}

// ---- the lost, and the dead ------------------------------------------------------------------

TEST_F(SessionsTest, AnExecutorThatComesBackWhileItIsBeingLostJoinsAnew) {
  server->sessions.OnClosed(server->Join("box")->id);
  server->Pass(kPatienceUs + 1);                             // decided next
  const auto link = server->Connect(MakeHello("box", "a"));  // in between
  server->Run();
  EXPECT_TRUE(server->sessions.Connected("box"));
  EXPECT_FALSE(Lost("box"));
  EXPECT_EQ(server->state().executors.at("box").incarnation, Incarnation{2});
  EXPECT_FALSE(link->closed);
}

TEST_F(SessionsTest, AConnectedExecutorThatTheLogCallsLostIsSentToJoinAgain) {
  const auto link = server->Join("box");
  server->Do(LoseExecutor{"box", Incarnation{1}, "by somebody else"});
  EXPECT_TRUE(link->closed);
  EXPECT_FALSE(server->sessions.Connected("box"));
  server->Join("box");
  EXPECT_FALSE(Lost("box"));
}

TEST_F(SessionsTest, AnExecutorThatCouldNotBeLostOnAFullDiskIsStillKnown) {
  server->sessions.OnClosed(server->Join("box")->id);
  FillAndTry();
  server->Pass(kPatienceUs + 1);
  server->Run();
  const auto link = server->Connect(MakeHello("box", "a"));
  EXPECT_TRUE(link->welcomed());
}

TEST_F(SessionsTest, AHelloOfADeadProcessReadAfterItsSuccessorsIsRefused) {
  const auto next = server->Connect(MakeHello("box", "b", 200));
  server->Run();
  const auto dead = server->Connect(MakeHello("box", "a", 100));
  server->Run();
  EXPECT_EQ(dead->refusal().code(), v1::Refusal::SUPERSEDED);
  EXPECT_FALSE(next->closed);
  EXPECT_EQ(server->state().executors.at("box").instance, "b");
}

TEST_F(SessionsTest, AnEarlierStartIsTakenOnceTheOtherProcessIsSilent) {
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

// ---- what pushes back ------------------------------------------------------------------------

TEST_F(SessionsTest, AStreamIsReadOnWhileLittleOfItWaits) {
  const auto link = server->Join("box");
  const int before = link->reads;
  server->SayRemoved(*link, 1, kSessionBytesMax - 1);
  EXPECT_EQ(link->reads, before + 1);
}

TEST_F(SessionsTest, AStreamOfWhichTooMuchWaitsIsReadOnOnceItIsStored) {
  const auto link = server->Join("box");
  const int before = link->reads;
  server->SayRemoved(*link, 1, kSessionBytesMax);
  EXPECT_EQ(link->reads, before);
  server->Run();
  EXPECT_EQ(link->reads, before + 1);
}

TEST_F(SessionsTest, WhenTooMuchWaitsOfAllEachHasOneMessageTaken) {
  std::vector<std::unique_ptr<FakeLink>> links;
  size_t waits = 0;
  for (int i = 0; waits < kSessionsBytesMax; ++i) {
    links.push_back(server->Join("box-" + std::to_string(i)));
    waits += kSessionBytesMax - 1;
  }
  for (const auto& link : links) server->SayRemoved(*link, 1, kSessionBytesMax - 1);
  const auto last = server->Join("last");  // decides on what waited
  std::vector<int> reads;
  for (const auto& link : links) reads.push_back(link->reads);
  EXPECT_THAT(reads, ::testing::Each(2));  // after its Hello and after its facts
}

TEST_F(SessionsTest, FactsGoToTheStoreOneBatchOfASessionAtATimeSoThatNoneIsOvertaken) {
  const auto link = server->Join("box");
  FillAndTry();
  store.full.reset();
  server->SayRemoved(*link, 1);
  server->SayRemoved(*link, 2);
  server->Run();  // refuses the first; the store could be written by now
  now.us += kProbeIntervalUs;
  server->Run();
  EXPECT_EQ(link->acknowledged(), 0u);
  EXPECT_TRUE(link->closed);
}

TEST_F(SessionsTest, FactsThatComeWhileOthersAreStoredGoTogether) {
  const auto link = server->Join("box");
  for (uint64_t seq = 1; seq <= 3; ++seq) server->SayRemoved(*link, seq);
  EXPECT_EQ(server->queue.TakeBatch().size(), 1u);  // the other two wait for it
}

TEST_F(SessionsTest, AStreamThatIsNotReadOnMayClose) {
  const auto link = server->Join("box");
  server->SayRemoved(*link, 1, kSessionBytesMax);
  server->sessions.OnClosed(link->id);
  server->Run();
  const auto again = server->Join("box");
  server->SayRemoved(*again, 1, kSessionBytesMax - 1);
  EXPECT_EQ(again->reads, 2);
}

}  // namespace
}  // namespace attune::server
