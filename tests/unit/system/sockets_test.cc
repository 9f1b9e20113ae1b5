#include "system/sockets.h"

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace attune {
namespace {

TEST(Sockets, KeepsBytesThatASocketDoesNotTake) {
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

TEST(Sockets, FindsLoopbackDownInANewNetwork) {
  const pid_t child = fork();
  if (child == 0) {
    const bool alone = unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
    _exit(!alone ? 2 : IsLoopbackUp() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "may not make a network of its own";
  EXPECT_EQ(status, 0);
}

TEST(Sockets, SendsDescriptorsWithPackets) {
  auto [ours, theirs] = std::move(SocketPair(SOCK_SEQPACKET).value());
  EXPECT_FALSE(ReceivePacket(ours.get(), MSG_DONTWAIT));
  EXPECT_EQ(errno, EAGAIN);
  ASSERT_TRUE(SendPacket(theirs.get(), "two", {theirs.get(), ours.get()}, 0));
  const auto packet = ReceivePacket(ours.get(), 0);
  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->bytes, "two");
  EXPECT_EQ(packet->descriptors.size(), 2u);
}

TEST(Sockets, RefusesAPacketThatIsTooLong) {
  auto [ours, theirs] = std::move(SocketPair(SOCK_SEQPACKET).value());
  ASSERT_TRUE(SendPacket(theirs.get(), std::string(kPacketBytesMax + 1, 'x'), {}, 0));
  EXPECT_FALSE(ReceivePacket(ours.get(), 0));
  EXPECT_EQ(errno, EMSGSIZE);
}

}  // namespace
}  // namespace attune
