#include "system/unix_sockets.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "tests/support/scratch_folder.h"

namespace attune {
namespace {

class UnixSockets : public ::testing::Test {
 protected:
  // Whether a byte that one end writes reaches the other.
  static void ExpectConnects(const UniqueFd& listener, const std::filesystem::path& path) {
    const auto client = ConnectToPath(path);
    ASSERT_TRUE(client.ok()) << client.error().message;
    const UniqueFd server(accept(listener.get(), nullptr, nullptr));
    ASSERT_TRUE(server);
    char byte = 'x';
    EXPECT_EQ(write(server.get(), &byte, 1), 1);
    EXPECT_EQ(read(client->get(), &byte, 1), 1);
    EXPECT_EQ(PeerOf(client->get())->user, geteuid());
    EXPECT_EQ(PeerOf(server.get())->user, geteuid());
  }

  const testing::ScratchFolder folder_;
};

TEST_F(UnixSockets, ConnectAtPathsOfAnyLength) {
  std::filesystem::path folder = folder_.path();
  for (int i = 0; i < 10; ++i) folder /= std::string(100, 'a');
  std::filesystem::create_directories(folder);
  const auto listener = ListenAtPath(folder / "s");
  ASSERT_TRUE(listener.ok()) << listener.error().message;
  ExpectConnects(*listener, folder / "s");
}

TEST_F(UnixSockets, LetOnlyTheirUserConnect) {
  const auto listener = ListenAtPath(folder_ / "s");
  struct stat status {};
  ASSERT_EQ(stat((folder_ / "s").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
}

TEST_F(UnixSockets, ReplaceTheSocketOfAProcessThatDied) {
  { const auto listener = ListenAtPath(folder_ / "s"); }
  EXPECT_EQ(ConnectToPath(folder_ / "s").error().code, ErrorCode::kNotFound);
  const auto listener = ListenAtPath(folder_ / "s");
  ASSERT_TRUE(listener.ok());
  ExpectConnects(*listener, folder_ / "s");
}

TEST_F(UnixSockets, ReportNotFoundWithoutAListener) {
  EXPECT_EQ(ConnectToPath(folder_ / "s").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(ConnectToPath(folder_ / "none/s").error().code, ErrorCode::kNotFound);
}

TEST_F(UnixSockets, NameAMissingFolder) {
  const auto refused = ListenAtPath(folder_ / "none/s");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find(folder_ / "none/s"), std::string::npos);
}

}  // namespace
}  // namespace attune
