#include "cli/client/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "base/result.h"
#include "tests/unit/cli/fake_server.h"

namespace attune::cli {
namespace {

using ::testing::HasSubstr;

TEST(NormaliseUrl, AcceptsHostsPortsAndUrls) {
  EXPECT_EQ(*NormaliseUrl("localhost:7070"), "http://localhost:7070");
  EXPECT_EQ(*NormaliseUrl(":7070"), "http://127.0.0.1:7070");
  EXPECT_EQ(*NormaliseUrl("https://box:7070/"), "https://box:7070");
}

TEST(NormaliseUrl, RefusesOtherSchemesAndPaths) {
  EXPECT_FALSE(NormaliseUrl("ftp://box").ok());
  EXPECT_FALSE(NormaliseUrl("http://box/api").ok());
  EXPECT_FALSE(NormaliseUrl("").ok());
}

std::unique_ptr<server::ServerSocket> RunAt(const std::string& url, const ScratchFolder& folder) {
  return server::ServerSocket::Open(folder.path(), {.http = url}).value();
}

TEST(FindServer, AsksInTheDataFolder) {
  const ScratchFolder folder;
  const auto running = RunAt("http://127.0.0.1:7171", folder);
  folder.Write("token", "abc\n");

  const Result<Endpoint> endpoint = FindServer({.data_dir = folder.path()});

  ASSERT_TRUE(endpoint.ok());
  EXPECT_EQ(endpoint->url, "http://127.0.0.1:7171");
  EXPECT_EQ(endpoint->token, "abc");
}

TEST(FindServer, NamesTheReasonIfTheFolderIsNotReachable) {
  const ScratchFolder folder;
  const std::filesystem::path loop = folder.path() / "loop";
  std::filesystem::create_symlink(loop, loop);
  const Error error = FindServer({.data_dir = loop}).error();
  EXPECT_EQ(error.code, ErrorCode::kInternal) << "`train` starts a server for kUnavailable";
  EXPECT_THAT(error.message, HasSubstr(std::strerror(ELOOP)));
}

TEST(FindServer, NamesTheCommandThatStartsOne) {
  const ScratchFolder folder;
  const Result<Endpoint> endpoint = FindServer({.data_dir = folder.path()});
  ASSERT_FALSE(endpoint.ok());
  EXPECT_EQ(endpoint.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(endpoint.error().message, HasSubstr("attune serve"));
}

TEST(FindServer, UsesTheFoldersTokenOnlyForItsServer) {
  const ScratchFolder folder;
  const auto running = RunAt("http://127.0.0.1:7171", folder);
  folder.Write("token", "abc\n");

  EXPECT_EQ(FindServer({.server = "elsewhere:7070", .data_dir = folder.path()})->token, "");
  EXPECT_EQ(FindServer({.server = ":7171", .data_dir = folder.path()})->token, "abc");
}

TEST(FindServer, DoesNotFindADeadServer) {
  const ScratchFolder folder;
  folder.Write("token", "abc\n");
  auto running = RunAt("http://127.0.0.1:7171", folder);
  running.reset();
  EXPECT_EQ(FindServer({.data_dir = folder.path()}).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(FindServer({.server = ":7171", .data_dir = folder.path()})->token, "");
}

TEST(FindCurrentUrl, FollowsTheServerOfTheFolder) {
  const ScratchFolder folder;
  folder.Write("token", "abc\n");
  auto running = RunAt("http://127.0.0.1:7171", folder);
  const Endpoint endpoint = FindServer({.data_dir = folder.path()}).value();
  EXPECT_EQ(FindCurrentUrl(endpoint).value(), "http://127.0.0.1:7171");
  running.reset();
  EXPECT_EQ(FindCurrentUrl(endpoint).error().code, ErrorCode::kUnavailable);
  running = RunAt("http://127.0.0.1:7272", folder);
  EXPECT_EQ(FindCurrentUrl(endpoint).value(), "http://127.0.0.1:7272");
}

TEST(FindCurrentUrl, DoesNotChangeANamedServer) {
  const ScratchFolder folder;
  const Endpoint endpoint =
      FindServer({.server = "box:7070", .token = "abc", .data_dir = folder.path()}).value();
  EXPECT_EQ(FindCurrentUrl(endpoint).value(), "http://box:7070");
}

TEST(FindServer, PrefersTheTokenFile) {
  const ScratchFolder folder;
  const std::string file = folder.Write("mine", "xyz\n");
  const Result<Endpoint> endpoint =
      FindServer({.server = "box:7070", .token = "abc", .token_file = file});
  EXPECT_EQ(endpoint->token, "xyz");
}

TEST(FindServer, IsDeniedWithoutTheTokenFile) {
  const Result<Endpoint> endpoint =
      FindServer({.server = "box:7070", .token_file = "/nonexistent/token"});
  ASSERT_FALSE(endpoint.ok());
  EXPECT_EQ(endpoint.error().code, ErrorCode::kDenied);
}

}  // namespace
}  // namespace attune::cli
