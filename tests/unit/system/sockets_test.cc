#include "system/sockets.h"

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <cerrno>

namespace attune {
namespace {

TEST(Sockets, WhatASocketDoesNotTakeIsKept) {
  auto [ours, theirs] = std::move(SocketPair(SOCK_STREAM).value());
  std::string unsent(4 << 20, 'x');
  const size_t size = unsent.size();
  SendSome(ours.get(), unsent);
  EXPECT_GT(unsent.size(), 0u);
  EXPECT_LT(unsent.size(), size);
  theirs.reset();
  SendSome(ours.get(), unsent);
  EXPECT_EQ(unsent, "") << "nobody listens any more";
}

TEST(Sockets, PacketsCarryDescriptors) {
  auto [ours, theirs] = std::move(SocketPair(SOCK_SEQPACKET).value());
  EXPECT_FALSE(ReceivePacket(ours.get(), MSG_DONTWAIT));
  EXPECT_EQ(errno, EAGAIN);
  ASSERT_TRUE(SendPacket(theirs.get(), "two", {theirs.get(), ours.get()}, 0));
  const auto packet = ReceivePacket(ours.get(), 0);
  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->bytes, "two");
  EXPECT_EQ(packet->descriptors.size(), 2u);
}

TEST(Sockets, PacketThatIsTooLongIsAnErrorAndNotItsBeginning) {
  auto [ours, theirs] = std::move(SocketPair(SOCK_SEQPACKET).value());
  ASSERT_TRUE(SendPacket(theirs.get(), std::string(kPacketBytesMax + 1, 'x'), {}, 0));
  EXPECT_FALSE(ReceivePacket(ours.get(), 0));
  EXPECT_EQ(errno, EMSGSIZE);
}

}  // namespace
}  // namespace attune
