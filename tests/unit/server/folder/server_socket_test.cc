#include "server/folder/server_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "system/unix_sockets.h"
#include "tests/support/scratch_folder.h"

namespace attune::server {
namespace {

const ServerAddress kAddress{.pid = 17, .http = "http://127.0.0.1:7070", .rpc = "127.0.0.1:7071"};
constexpr uid_t kNobody = 65534;

class ServerSocketTest : public ::testing::Test {
 protected:
  ErrorCode Refusal() const { return AskServer(folder_.path()).error().code; }

  const attune::testing::ScratchFolder folder_;
};

TEST_F(ServerSocketTest, AnswersWhileTheServerLives) {
  EXPECT_EQ(Refusal(), ErrorCode::kUnavailable);
  {
    const auto socket = ServerSocket::Open(folder_.path(), kAddress);
    ASSERT_TRUE(socket.ok()) << socket.error().message;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(AskServer(folder_.path()).value(), kAddress);
  }
  EXPECT_EQ(Refusal(), ErrorCode::kUnavailable);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "server.sock"));
}

TEST_F(ServerSocketTest, ASocketOfAKilledServerDoesNotAnswer) {
  const pid_t server = fork();
  if (server == 0) {
    const auto listener = ListenAtPath(folder_ / "server.sock");
    raise(SIGKILL);
  }
  waitpid(server, nullptr, 0);
  ASSERT_TRUE(std::filesystem::exists(folder_ / "server.sock"));
  EXPECT_EQ(Refusal(), ErrorCode::kUnavailable);
  const auto next = ServerSocket::Open(folder_.path(), kAddress);
  EXPECT_EQ(AskServer(folder_.path()).value(), kAddress);
}

TEST_F(ServerSocketTest, AnInvalidAnswerCountsAsNoServer) {
  const auto listener = ListenAtPath(folder_ / "server.sock");
  for (const std::string text : {"", "{", "[1]", "{\"http\": 7}"}) {
    std::thread other([&] {
      const UniqueFd client(accept(listener->get(), nullptr, nullptr));
      send(client.get(), text.data(), text.size(), MSG_NOSIGNAL);
    });
    EXPECT_EQ(Refusal(), ErrorCode::kUnavailable) << text;
    other.join();
  }
}

TEST_F(ServerSocketTest, OtherUsersNeitherAskNorAnswer) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  ASSERT_EQ(chmod(folder_.path().c_str(), 0777), 0);
  const auto as_nobody = [](auto work) {
    const pid_t child = fork();
    if (child == 0) {
      if (setgid(kNobody) != 0 || setuid(kNobody) != 0) _exit(2);
      _exit(work() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  {
    const auto socket = ServerSocket::Open(folder_.path(), kAddress);
    ASSERT_EQ(chmod((folder_ / "server.sock").c_str(), 0666), 0);
    EXPECT_EQ(as_nobody([&] { return !AskServer(folder_.path()).ok(); }), 0);
  }
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const UniqueFd here(ends[0]);
  UniqueFd there(ends[1]);
  std::thread stranger([&] {
    as_nobody([&] {
      const auto socket = ServerSocket::Open(folder_.path(), kAddress);
      char byte = 0;
      return write(there.get(), &byte, 1) == 1 && read(there.get(), &byte, 1) == 1;
    });
  });
  char byte = 0;
  ASSERT_EQ(read(here.get(), &byte, 1), 1);
  EXPECT_EQ(Refusal(), ErrorCode::kDenied);
  ASSERT_EQ(write(here.get(), &byte, 1), 1);
  stranger.join();
}

}  // namespace
}  // namespace attune::server
