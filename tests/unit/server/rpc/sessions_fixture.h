#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "base/result.h"
#include "base/version.h"
#include "server/conductor/conductor_machine.h"
#include "server/rpc/sessions.h"
#include "tests/support/memory_store.h"
#include "tests/support/toy_algorithms.h"

namespace attune::server {

inline constexpr int64_t kSecondUs = 1'000'000;
inline constexpr int64_t kLeaseUs = 20 * kSecondUs;
inline constexpr int64_t kPatienceUs = 30 * kSecondUs;

class FakeLink final : public ExecutorLink {
 public:
  void Send(v1::ToExecutor message) override { sent.push_back(std::move(message)); }
  void Close() override { closed = true; }
  void ReadNext() override { ++reads; }

  std::vector<v1::ToExecutor> MessagesOf(v1::ToExecutor::MessageCase kind) const {
    std::vector<v1::ToExecutor> found;
    for (const v1::ToExecutor& message : sent) {
      if (message.message_case() == kind) found.push_back(message);
    }
    return found;
  }
  bool released() const { return !MessagesOf(v1::ToExecutor::kReleased).empty(); }
  bool welcomed() const { return !MessagesOf(v1::ToExecutor::kWelcome).empty(); }
  v1::Refusal refusal() const {
    const auto all = MessagesOf(v1::ToExecutor::kRefusal);
    return all.empty() ? v1::Refusal() : all.front().refusal();
  }
  v1::Desired desired() const { return MessagesOf(v1::ToExecutor::kDesired).back().desired(); }
  uint64_t acknowledged() const {
    const auto all = MessagesOf(v1::ToExecutor::kAck);
    return all.empty() ? 0 : all.back().ack().seq();
  }

  std::vector<v1::ToExecutor> sent;
  bool closed = false;
  int reads = 0;
  SessionId id = 0;
};

inline v1::Hello MakeHello(const std::string& name, const std::string& instance,
                           int64_t started_us = 0) {
  v1::Hello hello;
  hello.set_format(kFormat);
  hello.set_token("secret");
  hello.set_name(name);
  hello.set_instance(instance);
  hello.set_started_us(started_us);
  hello.mutable_resources()->set_cpus(2);
  return hello;
}

// One process of a server: sessions and a conductor machine that the test steps.
class Server final : private Submissions, private Listener {
 public:
  Server(const Algorithms& algorithms, EventStore& store, Time& now)
      : now_(now),
        machine({.make_decider =
                     [&, this] {
                       return MakeBrainDecider(algorithms, [this](const std::string& name) {
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
  // Steps until nothing is left to do at this time.
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
    link->id = sessions.OnOpened(*link, now_);
    sessions.OnHello(link->id, hello, now_);
    return link;
  }
  std::unique_ptr<FakeLink> Join(const std::string& name, const std::string& instance = "a") {
    auto link = Connect(MakeHello(name, instance));
    Run();
    return link;
  }
  void SendHeartbeat(FakeLink& link) {
    v1::Heartbeat heartbeat;
    heartbeat.set_time_us(now_.us);
    sessions.OnHeartbeat(link.id, heartbeat, now_);
  }
  void SendRemoval(FakeLink& link, uint64_t seq, size_t bytes = 100) {
    sessions.OnFacts(link.id, {.commands = {}, .last = seq, .bytes = bytes}, now_);
  }
  // A fact that must wait for space.
  void SendStoredFact(FakeLink& link, uint64_t seq) {
    sessions.OnFacts(link.id, {.commands = {DrainExecutor{"box"}}, .last = seq, .bytes = 100},
                     now_);
  }
  void AdvanceTime(int64_t us) {
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
  void RecordEnds(std::vector<Command> facts) override {
    queue.Push({.commands = std::move(facts), .ends_only = true});
  }
  void Post(StateReader look) override { queue.Push({.look = std::move(look)}); }
  void CheckForStarts() override { queue.Push({}); }

  void OnStarted(const Brain& brain) override { sessions.OnStarted(brain, now_); }
  void OnState(EventSeq, const Status& writable) override { sessions.OnState(writable); }
  void OnDurable(std::span<const Event> events, const Brain& brain) override {
    sessions.OnDurable(events, brain);
  }

  Time& now_;

 public:
  Queue queue;
  static inline uint64_t processes = 0;
  const uint64_t run = ++processes;
  uint64_t identities = 0;
  bool awaits_identity = false;
  bool is_uploading = false;
  Sessions sessions{*this,
                    {.may_join = [](const std::string& token) { return token == "secret"; },
                     .new_identity = [this] { return LogIdentity(++identities * 1'000 + run); },
                     .awaits_identity = [this] { return awaits_identity; },
                     .run = run,
                     .is_uploading = [this](const auto&) { return is_uploading; },
                     .lease_ttl_us = kLeaseUs,
                     .patience_us = kPatienceUs}};
  ConductorMachine machine;
};

class SessionsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Restart();
    server->Start();
  }
  // Starts another process that has not read its log yet.
  void Restart() { server = std::make_unique<Server>(algorithms, store, now); }
  void Fill() { store.full = Error{ErrorCode::kStorageFull, "the disk is full"}; }
  // Makes the server notice the end of a lease.
  void FillAndTry() {
    Fill();
    server->Do(CreateSweep{attune::testing::ToySpec(), "text", ""});
  }
  void FreeStorage() {
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

}  // namespace attune::server
