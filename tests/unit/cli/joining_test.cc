#include "cli/joining.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/result.h"
#include "tests/unit/cli/fake_server.h"

namespace attune::cli {
namespace {

using ::testing::HasSubstr;

const std::string kFingerprint(64, 'b');
const std::string kWord = "sha256:" + kFingerprint + ":secret";

class Listening final : public RunningServer {
 public:
  explicit Listening(tls::Join join) : join_(std::move(join)) {}
  Endpoint endpoint() const override { return {}; }
  std::string https_url() const override { return ""; }
  std::string rpc_target() const override { return "10.0.0.5:7071"; }
  tls::Join join() const override { return join_; }
  Status WaitForStorage(SweepId, const std::stop_token&) override { return {}; }

 private:
  tls::Join join_;
};

TEST(ExecutorCommand, NamesTheFileAndNotTheSecret) {
  EXPECT_EQ(ExecutorCommand(Listening({"secret", ""}), "data"),
            "attune executor --server 10.0.0.5:7071 --token-file data/join");
}

TEST(FindJoin, UsesTheFirstSource) {
  const ScratchFolder folder;
  folder.Write("join", kWord + "\n");
  const std::string file = folder.Write("mine", "sha256:" + kFingerprint + ":of-the-file\n");
  JoinSource source{.file = file,
                    .environment = "sha256:" + kFingerprint + ":of-the-environment",
                    .data_dir = folder.path()};
  const auto token = [&] { return FindJoin(source, "box:7071")->token; };
  EXPECT_EQ(token(), "of-the-file");
  source.file.clear();
  EXPECT_EQ(token(), "of-the-environment");
  source.environment.clear();
  EXPECT_EQ(token(), "secret");
  EXPECT_EQ(FindJoin(source, "box:7071")->fingerprint, kFingerprint);
}

TEST(FindJoin, AcceptsATokenAloneOnlyOnThisHost) {
  for (const char* target : {"127.0.0.1:7071", "localhost:7071", "[::1]:7071", "127.0.0.5:7071"}) {
    EXPECT_TRUE(FindJoin({.environment = "secret"}, target).ok()) << target;
  }
  for (const char* target :
       {"10.0.0.5:7071", "box:7071", "[fe80::1]:7071", "0.0.0.0:7071", "127.example.org:7071"}) {
    const auto join = FindJoin({.environment = "secret"}, target);
    ASSERT_FALSE(join.ok()) << target;
    EXPECT_EQ(join.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(join.error().message, HasSubstr("--rpc-host"));
    EXPECT_TRUE(FindJoin({.environment = kWord}, target).ok()) << target;
  }
}

TEST(FindJoin, NamesTheFileWithTheCredentials) {
  const ScratchFolder folder;
  const auto none = FindJoin({.data_dir = folder.path()}, "127.0.0.1:7071");
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message, HasSubstr("DATA-DIR/join"));
  const auto half = FindJoin({.environment = kWord.substr(0, 40)}, "box:7071");
  ASSERT_FALSE(half.ok());
  EXPECT_THAT(half.error().message, HasSubstr("--token-file: "));
}

}  // namespace
}  // namespace attune::cli
