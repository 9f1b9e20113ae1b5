#include "server/rpc/executor_service.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <future>
#include <memory>
#include <thread>

#include "base/result.h"
#include "server/rpc/rpc_server.h"
#include "tests/support/memory_store.h"
#include "tests/support/mentions.h"
#include "tests/support/toy_algorithms.h"
#include "tests/unit/server/rpc/fake_executor.h"

namespace attune::server {
namespace {

using ::testing::HasSubstr;

class ExecutorServiceTest : public ::testing::Test {
 protected:
  void SetUp() override { StartServer(std::chrono::milliseconds(60'000)); }

  void StartServer(std::chrono::milliseconds lease_ttl) {
    rpc.reset();
    service.reset();
    conductor = std::make_unique<Conductor>(algorithms, store, [this] { return Time{++now}; });
    service = std::make_unique<ExecutorService>(
        *conductor, ExecutorService::Options{
                        .may_join = [](const std::string& token) { return token == "secret"; },
                        .lease_ttl = lease_ttl});
    ASSERT_TRUE(conductor->Start().ok());
    auto started = RpcServer::Start(*service, {.listen = false, .lease_ttl = lease_ttl});
    ASSERT_TRUE(started.ok());
    rpc = std::move(started).value();
  }

  void TearDown() override {
    conductor->Stop();
    rpc.reset();
    conductor.reset();
  }

  SweepId CreateSweep() {
    const auto events =
        conductor->Execute(attune::CreateSweep{attune::testing::ToySpec(), "text", ""});
    return std::get<SweepCreated>(events->front().fact).sweep;
  }

  template <class F>
  F ReadState(F (*look)(const Brain&)) {
    F result{};
    conductor->Query([&](const Brain& brain) { result = look(brain); });
    return result;
  }

  attune::testing::MemoryStore store;
  const Algorithms algorithms = attune::testing::ToyAlgorithms();
  std::atomic<int64_t> now = 0;
  std::unique_ptr<Conductor> conductor;
  std::unique_ptr<ExecutorService> service;
  std::unique_ptr<RpcServer> rpc;
};

TEST_F(ExecutorServiceTest, AWrongTokenIsRefused) {
  FakeExecutor executor(rpc->LocalChannel(), "box", "a", "wrong");
  const auto refusal = executor.Await(v1::ToExecutor::kRefusal).refusal();
  EXPECT_EQ(refusal.code(), v1::Refusal::BAD_TOKEN);
  EXPECT_TRUE(store.events.empty());
}

TEST_F(ExecutorServiceTest, AnotherFormatIsRefusedWithBothVersionsAndTheRemedy) {
  v1::Hello hello = FakeExecutor::Hello("box", "a");
  hello.set_version("0.0.1");
  hello.set_format(0);
  FakeExecutor executor(rpc->LocalChannel(), hello);
  const auto refusal = executor.Await(v1::ToExecutor::kRefusal).refusal();
  EXPECT_EQ(refusal.code(), v1::Refusal::VERSION);
  EXPECT_THAT(refusal.message(), testing::Mentions("0.0.1", "format 0"));
  EXPECT_TRUE(store.events.empty());
}

TEST_F(ExecutorServiceTest, AHelloWithoutANameIsRefused) {
  FakeExecutor executor(rpc->LocalChannel(), FakeExecutor::Hello("", "a"));
  const auto refusal = executor.Await(v1::ToExecutor::kRefusal).refusal();
  EXPECT_EQ(refusal.code(), v1::Refusal::BAD_HELLO);
  EXPECT_THAT(refusal.message(), HasSubstr("--name"));
}

TEST_F(ExecutorServiceTest, AJoinedExecutorIsToldWhatToRun) {
  FakeExecutor executor(rpc->LocalChannel());
  EXPECT_EQ(executor.Await(v1::ToExecutor::kWelcome).welcome().lease_ttl_ms(), 60'000u);
  EXPECT_EQ(executor.AwaitDesired([](const auto&) { return true; }).assignments_size(), 0);
  CreateSweep();
  const v1::Desired desired =
      executor.AwaitDesired([](const auto& d) { return d.assignments_size() == 2; });
  const v1::Assignment& first = desired.assignments(0);
  EXPECT_EQ(first.attempt().attempt(), 1u);
  EXPECT_EQ(first.milestone(), 2);
  EXPECT_EQ(first.max_step(), 6);
  EXPECT_EQ(first.config(0).value().integer(), 0);
  EXPECT_EQ(first.ranks_size(), 1);
}

TEST_F(ExecutorServiceTest, FactsAreAcknowledgedWhenTheyAreDurable) {
  FakeExecutor executor(rpc->LocalChannel());
  CreateSweep();
  const auto desired =
      executor.AwaitDesired([](const auto& d) { return d.assignments_size() == 2; });
  executor.Report(desired.assignments(0).attempt(), 1, 0.7);
  while (executor.Await(v1::ToExecutor::kAck).ack().seq() < 1) {
  }
  EXPECT_EQ(ReadState<Step>([](const Brain& brain) {
              return brain.state().Find(TrialId(SweepId{1}, TrialNumber{0}))->last_step;
            }),
            Step(1));
}

TEST_F(ExecutorServiceTest, AVerdictReachesTheExecutorThatWaitsForIt) {
  FakeExecutor executor(rpc->LocalChannel());
  CreateSweep();
  const auto desired =
      executor.AwaitDesired([](const auto& d) { return d.assignments_size() == 2; });
  executor.Report(desired.assignments(0).attempt(), 2, 0.1);
  const auto verdict = executor.AwaitDesired([](const auto& d) {
    return d.assignments_size() == 2 && d.assignments(0).verdict_step() == 2;
  });
  EXPECT_EQ(verdict.assignments(0).action(), v1::STOP);
  executor.Report(desired.assignments(1).attempt(), 2, 0.9);
  const auto next = executor.AwaitDesired([](const auto& d) {
    return d.assignments_size() == 2 && d.assignments(1).verdict_step() == 2;
  });
  EXPECT_EQ(next.assignments(1).action(), v1::CONTINUE);
  EXPECT_EQ(next.assignments(1).milestone(), 4);
}

TEST_F(ExecutorServiceTest, GangsOfAPausedSweepAreAskedToYieldAndToldToPause) {
  FakeExecutor executor(rpc->LocalChannel());
  const SweepId sweep = CreateSweep();
  const auto running =
      executor.AwaitDesired([](const auto& d) { return d.assignments_size() == 2; });
  EXPECT_FALSE(running.assignments(0).yield());
  ASSERT_TRUE(conductor->Execute(PauseSweep{sweep}).ok());
  const auto yielding = executor.AwaitDesired(
      [](const auto& d) { return d.assignments(0).yield() && d.assignments(1).yield(); });
  executor.ReportWaiting(yielding.assignments(0).attempt(), 1);
  const auto told =
      executor.AwaitDesired([](const auto& d) { return d.assignments(0).verdict_step() == 1; });
  EXPECT_EQ(told.assignments(0).action(), v1::PAUSE);
  EXPECT_FALSE(told.assignments(0).yield());
  EXPECT_TRUE(told.assignments(1).yield());
  ASSERT_TRUE(conductor->Execute(ResumeSweep{sweep}).ok());
  executor.AwaitDesired([](const auto& d) { return !d.assignments(1).yield(); });
}

TEST_F(ExecutorServiceTest, ADroppedCheckpointStaysInDesiredUntilRemoved) {
  FakeExecutor executor(rpc->LocalChannel());
  CreateSweep();
  const auto attempt =
      executor.AwaitDesired([](const auto& d) { return d.assignments_size() == 2; })
          .assignments(0)
          .attempt();
  for (const int64_t step : {1, 2}) {
    executor.SaveCheckpoint(attempt, step);
    executor.Report(attempt, step, 0.8 + 0.01 * static_cast<double>(step));
  }
  const auto desired = executor.AwaitDesired([](const auto& d) { return d.removals_size() == 1; });
  const v1::CheckpointRemoval& removal = desired.removals(0);
  EXPECT_EQ(removal.sweep(), attempt.sweep());
  EXPECT_EQ(removal.trial(), attempt.trial());
  EXPECT_EQ(removal.attempt(), attempt.attempt());
  EXPECT_EQ(removal.step(), 1);
  EXPECT_EQ(removal.path(), "/data/step-1-attempt-1");
  executor.SendRemoval(removal);
  executor.AwaitDesired([](const auto& d) { return d.removals_size() == 0; });
}

TEST_F(ExecutorServiceTest, ADeletedSweepStaysInDesiredUntilRemoved) {
  FakeExecutor executor(rpc->LocalChannel());
  const SweepId sweep = CreateSweep();
  const auto desired =
      executor.AwaitDesired([](const auto& d) { return d.assignments_size() == 2; });
  ASSERT_TRUE(conductor->Execute(KillSweep{sweep}).ok());
  for (const v1::Assignment& assignment : desired.assignments())
    executor.SendFact(assignment.attempt(), [](v1::Fact& fact) {
      fact.mutable_ended()->set_outcome(v1::Ended::CANCELLED);
    });
  executor.AwaitDesired([](const auto& d) { return d.unwanted_size() == 0; });
  while (!conductor->Execute(DeleteSweep{sweep, EventSeq(1'000'000)}).ok()) {
  }
  executor.AwaitDesired([&](const auto& d) {
    return d.deleted_sweeps_size() == 1 && d.deleted_sweeps(0).sweeps(0) == sweep.value;
  });
  executor.SendSweepRemoval(sweep.value);
  executor.AwaitDesired([](const auto& d) { return d.deleted_sweeps_size() == 0; });
}

TEST_F(ExecutorServiceTest, AReconnectKeepsTheGangsOfTheSameProcess) {
  CreateSweep();
  {
    FakeExecutor executor(rpc->LocalChannel());
    executor.AwaitDesired([](const auto& d) { return d.assignments_size() == 2; });
  }
  FakeExecutor again(rpc->LocalChannel());
  const auto desired = again.AwaitDesired([](const auto& d) { return d.assignments_size() == 2; });
  EXPECT_EQ(desired.assignments(0).attempt().attempt(), 1u);
}

TEST_F(ExecutorServiceTest, AnotherProcessOfTheSameNameSupersedesTheFirst) {
  CreateSweep();
  FakeExecutor first(rpc->LocalChannel());
  first.AwaitDesired([](const auto& d) { return d.assignments_size() == 2; });
  FakeExecutor second(rpc->LocalChannel(), "box", "b");
  EXPECT_EQ(first.Await(v1::ToExecutor::kRefusal).refusal().code(), v1::Refusal::SUPERSEDED);
  const auto desired = second.AwaitDesired([](const auto& d) { return d.assignments_size() == 2; });
  EXPECT_EQ(desired.assignments(0).attempt().attempt(), 2u);
}

TEST_F(ExecutorServiceTest, AnExecutorThatStaysAwayLosesItsGangsToOthers) {
  StartServer(std::chrono::milliseconds(40));
  CreateSweep();
  {
    FakeExecutor executor(rpc->LocalChannel());
    executor.AwaitDesired([](const auto& d) { return d.assignments_size() == 2; });
  }
  EventSeq seen{0};
  while (
      ReadState<bool>([](const Brain& brain) { return !brain.state().executors.at("box").lost; })) {
    seen = conductor->WaitForEvents(seen, 10);
  }
  EXPECT_EQ(ReadState<int>([](const Brain& brain) {
              return brain.state().Find(SweepId{1})->Count(TrialState::kPending);
            }),
            2);
}

TEST_F(ExecutorServiceTest, NothingIsPlacedOnAnExecutorThatSaidGoodbye) {
  FakeExecutor executor(rpc->LocalChannel());
  CreateSweep();
  const auto desired =
      executor.AwaitDesired([](const auto& d) { return d.assignments_size() == 2; });
  executor.SendGoodbye();
  executor.SendFact(desired.assignments(0).attempt(), [](v1::Fact& fact) {
    fact.mutable_ended()->set_outcome(v1::Ended::CANCELLED);
  });
  while (executor.Await(v1::ToExecutor::kAck).ack().seq() < 1) {
  }
  EXPECT_EQ(ReadState<int>([](const Brain& brain) {
              return brain.state().Find(SweepId{1})->Count(TrialState::kPending);
            }),
            1);
}

TEST_F(ExecutorServiceTest, AHeartbeatIsAnsweredWithItsOwnTime) {
  FakeExecutor executor(rpc->LocalChannel());
  executor.Await(v1::ToExecutor::kWelcome);
  executor.SendHeartbeat(1234);
  const v1::Ack ack = executor.Await(v1::ToExecutor::kAck).ack();
  EXPECT_EQ(ack.heartbeat_us(), 1234);
  EXPECT_EQ(ack.seq(), 0u);
}

TEST_F(ExecutorServiceTest, AnExecutorThatReadsLateGetsTheNewestAnswersOnly) {
  FakeExecutor executor(rpc->LocalChannel());
  executor.AwaitDesired([](const auto&) { return true; });
  constexpr int kHeartbeats = 100;
  for (int i = 1; i <= kHeartbeats; ++i) executor.SendHeartbeat(i);
  executor.SendGoodbye();
  while (service->ReachOf("box").takes) std::this_thread::yield();  // all messages have been read
  int answers = 0;
  int64_t newest = 0;
  while (newest < kHeartbeats) {
    const int64_t answered = executor.Await(v1::ToExecutor::kAck).ack().heartbeat_us();
    EXPECT_GT(answered, newest);
    newest = answered;
    ++answers;
  }
  EXPECT_LT(answers, kHeartbeats / 2);
}

TEST_F(ExecutorServiceTest, AFullDiskKeepsTheExecutorAndRequestsItsFactsLater) {
  FakeExecutor executor(rpc->LocalChannel());
  CreateSweep();
  const auto desired =
      executor.AwaitDesired([](const auto& d) { return d.assignments_size() == 2; });
  conductor->Query([&](const Brain&) {
    store.full = Error{ErrorCode::kStorageFull, "the disk is full"};
  });
  executor.Report(desired.assignments(0).attempt(), 1, 0.7);
  while (conductor->Ready().ok()) std::this_thread::yield();
  executor.SendHeartbeat(1234);
  const v1::Ack ack = executor.Await(v1::ToExecutor::kAck).ack();
  EXPECT_EQ(ack.heartbeat_us(), 1234);
  EXPECT_EQ(ack.seq(), 0u);
  conductor->Query([&](const Brain&) { store.full.reset(); });
  now += kProbeIntervalUs;
  conductor->CheckForStarts();
  EXPECT_EQ(executor.Await(v1::ToExecutor::kRefusal).refusal().code(), v1::Refusal::BUSY);
}

TEST_F(ExecutorServiceTest, LogsAreReadFromTheExecutorThatHoldsThem) {
  FakeExecutor executor(rpc->LocalChannel());
  executor.Await(v1::ToExecutor::kWelcome);
  FakeExecutor stranger(rpc->LocalChannel(), "den", "b");
  stranger.Await(v1::ToExecutor::kWelcome);
  std::thread reader([&] {
    const auto request = executor.Await(v1::ToExecutor::kLogRequest).log_request();
    EXPECT_EQ(request.attempt().trial(), 3u);
    v1::LogChunk chunk;
    chunk.set_request(request.request());
    chunk.set_data("not asked for");
    stranger.Answer(chunk);
    stranger.SendHeartbeat(1);
    stranger.Await(v1::ToExecutor::kAck);  // its earlier messages have been read
    chunk.set_data("hello");
    chunk.set_file_bytes(5);
    executor.Answer(chunk);
  });
  while (!service->ReachOf("box").takes) std::this_thread::yield();
  const auto slice =
      service->ReadLog("box", AttemptId{TrialId(SweepId{1}, TrialNumber{3}), 1}, 0, -100, 100);
  reader.join();
  ASSERT_TRUE(slice.ok());
  EXPECT_EQ(slice->data, "hello");
  const auto absent = service->ReadLog("other", AttemptId{}, 0, 0, 1);
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(absent.error().message, HasSubstr("other"));
}

TEST_F(ExecutorServiceTest, ReadLogFailsAtOnceWhenItsExecutorDisconnects) {
  FakeExecutor executor(rpc->LocalChannel());
  executor.Await(v1::ToExecutor::kWelcome);
  while (!service->ReachOf("box").takes) std::this_thread::yield();
  auto reading = std::async([&] { return service->ReadLog("box", AttemptId{}, 0, 0, 1); });
  executor.Await(v1::ToExecutor::kLogRequest);
  executor.Leave();
  const auto read = reading.get();
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().message, HasSubstr("box"));
}

TEST_F(ExecutorServiceTest, CheckpointsAreReadFromTheExecutorThatHasThem) {
  FakeExecutor executor(rpc->LocalChannel());
  executor.Await(v1::ToExecutor::kWelcome);
  while (!service->ReachOf("box").takes) std::this_thread::yield();
  const ExecutorService::PieceRequest wanted{.trial = TrialId(SweepId{1}, TrialNumber{3}),
                                             .folder = "step-3-attempt-1",
                                             .file = "model.bin",
                                             .offset = 5,
                                             .limit_bytes = 4 << 20};
  auto reading = std::async([&] { return service->ReadCheckpoint("box", wanted); });
  const auto request = executor.Await(v1::ToExecutor::kCheckpointRequest).checkpoint_request();
  EXPECT_EQ(request.trial(), 3u);
  EXPECT_EQ(request.folder(), "step-3-attempt-1");
  EXPECT_EQ(request.offset(), 5u);
  v1::CheckpointPiece piece;
  piece.set_request(request.request());
  piece.set_data(std::string(4 << 20, 'x'));  // as large as real pieces
  EXPECT_EQ(executor.Deliver(piece).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  piece.set_token("secret");
  EXPECT_TRUE(executor.Deliver(piece).ok());
  const auto read = reading.get();
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->data().size(), 4u << 20);
  EXPECT_TRUE(executor.Deliver(piece).ok()) << "the reader has given up";

  piece.clear_data();
  piece.set_error("cannot read model.bin");
  reading = std::async([&] { return service->ReadCheckpoint("box", wanted); });
  piece.set_request(
      executor.Await(v1::ToExecutor::kCheckpointRequest).checkpoint_request().request());
  EXPECT_TRUE(executor.Deliver(piece).ok());
  const auto unread = reading.get();
  ASSERT_FALSE(unread.ok());
  EXPECT_EQ(unread.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(unread.error().message, HasSubstr("model.bin"));
}

TEST_F(ExecutorServiceTest, ReadCheckpointFailsAtOnceWhenItsExecutorDisconnects) {
  FakeExecutor executor(rpc->LocalChannel());
  executor.Await(v1::ToExecutor::kWelcome);
  while (!service->ReachOf("box").takes) std::this_thread::yield();
  auto reading = std::async([&] { return service->ReadCheckpoint("box", {.file = "model.bin"}); });
  executor.Await(v1::ToExecutor::kCheckpointRequest);
  executor.Leave();
  ASSERT_EQ(reading.wait_for(kPieceWaitLimits.longest / 2), std::future_status::ready);
  const auto read = reading.get();
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(read.error().message, HasSubstr("box"));
  EXPECT_FALSE(service->ReadCheckpoint("box", {}).ok());
}

TEST_F(ExecutorServiceTest, ConcurrentReadsOfCheckpointsAreLimited) {
  FakeExecutor executor(rpc->LocalChannel());
  executor.Await(v1::ToExecutor::kWelcome);
  while (!service->ReachOf("box").takes) std::this_thread::yield();
  std::vector<std::future<Result<v1::CheckpointPiece>>> readers;
  for (size_t i = 0; i < kPieceWaitLimits.requests_max; ++i) {
    readers.push_back(std::async([&] { return service->ReadCheckpoint("box", {.file = "a"}); }));
    executor.Await(v1::ToExecutor::kCheckpointRequest);
  }
  const auto refused = service->ReadCheckpoint("box", {.file = "a"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("16 readers"));
  executor.Leave();
}

TEST_F(ExecutorServiceTest, AFetchNamesExecutorsForDirectReads) {
  v1::Hello hello = FakeExecutor::Hello("own", "a");
  hello.set_folder("of own");
  hello.set_address("10.0.0.1");
  hello.set_pieces_port(4'000);
  hello.set_pieces_key("a key");
  FakeExecutor own(rpc->LocalChannel(), hello);
  SweepSpec spec = attune::testing::ToySpec();
  spec.stop.max_trials = 1;  // other trials would take the slots
  ASSERT_TRUE(conductor->Execute(attune::CreateSweep{spec, "text", ""}).ok());
  const v1::AttemptRef attempt =
      own.AwaitDesired([](const auto& d) { return d.assignments_size() > 0; })
          .assignments(0)
          .attempt();
  own.SaveCheckpoint(attempt, 1);
  own.Report(attempt, 1, 0.5);
  hello = FakeExecutor::Hello("other", "a");
  hello.set_folder("of other");
  FakeExecutor other(rpc->LocalChannel(), hello);
  while (!service->ReachOf("other").takes) std::this_thread::yield();
  ASSERT_TRUE(conductor->Execute(DrainExecutor{.name = "own", .now = true}).ok());
  own.SendFact(attempt,
               [](v1::Fact& fact) { fact.mutable_ended()->set_outcome(v1::Ended::CANCELLED); });
  const auto goes_on = [](const v1::Assignment& each) { return each.has_resume(); };
  const v1::Desired desired = other.AwaitDesired(
      [&](const auto& d) { return std::ranges::any_of(d.assignments(), goes_on); });
  const v1::ResumeFrom resume = std::ranges::find_if(desired.assignments(), goes_on)->resume();
  EXPECT_TRUE(resume.has_fetch());
  ASSERT_EQ(resume.servers_size(), 1);
  EXPECT_EQ(resume.servers(0).executor(), "own");
  EXPECT_EQ(resume.servers(0).address(), "10.0.0.1");
  EXPECT_EQ(resume.servers(0).port(), 4'000u);
  EXPECT_EQ(resume.servers(0).key(), "a key");
}

TEST(RpcServer, ATakenPortIsNamed) {
  attune::testing::MemoryStore store;
  const Algorithms algorithms = attune::testing::ToyAlgorithms();
  Conductor conductor(algorithms, store, [] { return Time{1}; });
  ExecutorService service(conductor, {.may_join = [](const std::string&) { return true; },
                                      .lease_ttl = std::chrono::seconds(60)});
  ASSERT_TRUE(conductor.Start().ok());
  const RpcServer::Options options{.host = "127.0.0.1", .lease_ttl = std::chrono::seconds(60)};
  auto first = RpcServer::Start(service, options);
  ASSERT_TRUE(first.ok());
  RpcServer::Options same = options;
  same.port = (*first)->port();
  const auto second = RpcServer::Start(service, same);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message, HasSubstr(std::to_string(same.port)));
  conductor.Stop();
}

TEST(RpcServer, APortThatOtherMachinesReachNeedsTls) {
  attune::testing::MemoryStore store;
  const Algorithms algorithms = attune::testing::ToyAlgorithms();
  Conductor conductor(algorithms, store, [] { return Time{1}; });
  ExecutorService service(conductor, {.may_join = [](const std::string&) { return true; },
                                      .lease_ttl = std::chrono::seconds(60)});
  const RpcServer::Options options{.host = "0.0.0.0", .lease_ttl = std::chrono::seconds(60)};
  const auto refused = RpcServer::Start(service, options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(refused.error().message, HasSubstr("0.0.0.0"));
}

}  // namespace
}  // namespace attune::server
