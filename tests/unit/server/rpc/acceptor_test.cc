#include "server/rpc/acceptor.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "server/rpc/rpc_server.h"
#include "system/unique_fd.h"
#include "tests/support/memory_store.h"
#include "tests/support/toy_algorithms.h"
#include "tests/unit/server/rpc/fake_executor.h"

namespace attune::server {
namespace {

constexpr size_t kExecutors = 2;
constexpr size_t kUnauthenticated = 4;

// A server for few executors.
class AcceptorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    conductor_ = std::make_unique<Conductor>(algorithms_, store_, [this] { return Time{++now_}; });
    service_ = std::make_unique<ExecutorService>(
        *conductor_, ExecutorService::Options{
                         .may_join = [](const std::string& token) { return token == "secret"; },
                         .lease_ttl = std::chrono::milliseconds(60'000)});
    ASSERT_TRUE(conductor_->Start().ok());
    auto started = RpcServer::Start(
        *service_,
        {.host = "127.0.0.1",
         .lease_ttl = std::chrono::milliseconds(60'000),
         .connections = {.executors = kExecutors, .executors_unauthenticated = kUnauthenticated}});
    ASSERT_TRUE(started.ok()) << started.error().message;
    rpc_ = std::move(started).value();
  }

  void TearDown() override {
    conductor_->Stop();
    rpc_.reset();
    conductor_.reset();
  }

  // A channel with a connection that no other channel uses.
  std::shared_ptr<grpc::Channel> NewChannel() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(rpc_->port()),
                                     grpc::InsecureChannelCredentials(), arguments);
  }

  UniqueFd Connect() const {
    UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{.sin_family = AF_INET,
                        .sin_port = htons(static_cast<uint16_t>(rpc_->port())),
                        .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    EXPECT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return client;
  }

  // Waits until the server closes the connection.
  static void AwaitEnd(const UniqueFd& client) {
    std::array<char, 256> ignored;
    while (::recv(client.get(), ignored.data(), ignored.size(), 0) > 0) {
    }
  }

  attune::testing::MemoryStore store_;
  const Algorithms algorithms_ = attune::testing::ToyAlgorithms();
  std::atomic<int64_t> now_ = 0;
  std::unique_ptr<Conductor> conductor_;
  std::unique_ptr<ExecutorService> service_;
  std::unique_ptr<RpcServer> rpc_;
};

TEST_F(AcceptorTest, StrangersCloseEachOtherAndNoExecutor) {
  FakeExecutor executor(NewChannel(), "box", "a");
  executor.Await(v1::ToExecutor::kWelcome);
  std::vector<UniqueFd> strangers;
  for (size_t i = 0; i < 2 * kUnauthenticated; ++i) strangers.push_back(Connect());
  // A stranger that connects last and waits until it is disconnected.
  UniqueFd victim = Connect();
  for (size_t i = 0; i < 100; ++i) strangers.push_back(Connect());
  AwaitEnd(victim);
  executor.SendHeartbeat(7);
  while (executor.Await(v1::ToExecutor::kAck).ack().heartbeat_us() != 7) {
  }
  FakeExecutor another(NewChannel(), "other", "b");
  another.Await(v1::ToExecutor::kWelcome);
}

TEST_F(AcceptorTest, AnExecutorBeyondTheLimitIsRefusedWithAReason) {
  FakeExecutor first(NewChannel(), "a", "a");
  first.Await(v1::ToExecutor::kWelcome);
  FakeExecutor second(NewChannel(), "b", "b");
  second.Await(v1::ToExecutor::kWelcome);
  FakeExecutor third(NewChannel(), "c", "c");
  EXPECT_EQ(third.Await(v1::ToExecutor::kRefusal).refusal().code(), v1::Refusal::BUSY);
}

TEST_F(AcceptorTest, AHelloOfSixtyKibibytesIsRead) {
  v1::Hello hello = FakeExecutor::Hello("box", "a");
  v1::SweepFiles& files = *hello.add_sweeps();
  for (uint64_t sweep = 0; sweep < 20'000; ++sweep) files.add_sweeps((uint64_t{1} << 20) + sweep);
  ASSERT_GT(hello.ByteSizeLong(), 59'000u);
  ASSERT_LE(hello.ByteSizeLong(), 65'536u);
  FakeExecutor executor(NewChannel(), hello);
  executor.Await(v1::ToExecutor::kWelcome);
}

// The acceptor counts bytes when they arrive. On a busy host gRPC may have read the message
// earlier, and the stranger is refused instead. End-to-end tests measure how much memory strangers
// can use.
TEST_F(AcceptorTest, AStrangerWhoSendsMuchIsCutOffOrRefused) {
  v1::Hello hello = FakeExecutor::Hello("box", "a", "wrong");
  hello.set_folder(std::string(1 << 20, 'x'));
  const auto stub = v1::Executors::NewStub(NewChannel());
  grpc::ClientContext context;
  const auto stream = stub->Connect(&context);
  v1::FromExecutor message;
  *message.mutable_hello() = hello;
  stream->Write(message);
  v1::ToExecutor answer;
  const bool is_refused = stream->Read(&answer);
  if (is_refused) {
    EXPECT_EQ(answer.refusal().code(), v1::Refusal::BAD_TOKEN) << answer.ShortDebugString();
    EXPECT_FALSE(stream->Read(&answer)) << "the connection ends";
  } else {
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  }
}

TEST_F(AcceptorTest, AnExecutorThatHasJoinedMaySendMuch) {
  FakeExecutor executor(NewChannel(), "box", "a");
  executor.Await(v1::ToExecutor::kWelcome);
  v1::CheckpointPiece piece;
  piece.set_token("secret");
  piece.set_data(std::string(4 << 20, 'x'));
  EXPECT_TRUE(executor.Deliver(piece).ok());
}

TEST_F(AcceptorTest, AnEndedConnectionFreesItsSlot) {
  for (int i = 0; i < 10; ++i) {
    FakeExecutor executor(NewChannel(), "box", "a");
    // The server notices the end of the connection before one of the later attempts.
    for (;;) {
      FakeExecutor next(NewChannel(), "box", std::to_string(i));
      if (next.Next().has_welcome()) break;
    }
  }
}

}  // namespace
}  // namespace attune::server
