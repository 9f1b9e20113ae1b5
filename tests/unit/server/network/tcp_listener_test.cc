#include "server/network/tcp_listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attune::server {
namespace {

using ::testing::HasSubstr;

TEST(TcpListenerTest, ListensOnAFreePort) {
  for (const std::string host : {"127.0.0.1", "localhost", "0.0.0.0"}) {
    const auto listener = ListenTcp(host, 0, "--port");
    ASSERT_TRUE(listener.ok()) << listener.error().message;
    EXPECT_TRUE(listener->socket);
    EXPECT_GT(listener->port, 0);
  }
}

TEST(TcpListenerTest, KnowsWhetherOtherMachinesReachIt) {
  EXPECT_TRUE(ListenTcp("127.0.0.1", 0, "--port")->is_loopback);
  EXPECT_TRUE(ListenTcp("127.1.2.3", 0, "--port")->is_loopback);
  EXPECT_FALSE(ListenTcp("0.0.0.0", 0, "--port")->is_loopback);
}

TEST(TcpListenerTest, ATakenPortNamesTheOptionThatChoosesAnother) {
  const auto first = ListenTcp("127.0.0.1", 0, "--rpc-port");
  ASSERT_TRUE(first.ok());
  const auto second = ListenTcp("127.0.0.1", first->port, "--rpc-port");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(second.error().message, HasSubstr(std::to_string(first->port)));
  EXPECT_THAT(second.error().message, HasSubstr("--rpc-port"));
}

TEST(TcpListenerTest, AnAddressOfAnotherMachineIsRefused) {
  for (const std::string host : {"192.0.2.1", "no-such-host.invalid", ""}) {
    const auto listener = ListenTcp(host.empty() ? "256.1.1.1" : host, 0, "--port");
    ASSERT_FALSE(listener.ok()) << host;
    EXPECT_EQ(listener.error().code, ErrorCode::kUnavailable);
  }
  EXPECT_THAT(ListenTcp("192.0.2.1", 0, "--port").error().message, HasSubstr("192.0.2.1"));
}

}  // namespace
}  // namespace attune::server
