#include <stdlib.h>

#include "executor/agent/agent.h"
#include "tests/unit/executor/fake_server.h"
#include "tests/unit/executor/transfer/fake_rclone.h"

namespace attune::agent {
namespace {

// An agent that finds this rclone.
class AgentStorageTest : public testing::Test {
 protected:
  AgentStorageTest() { Use(rclone_.Environment().back().substr(sizeof "ATTUNE_RCLONE")); }
  ~AgentStorageTest() override {
    server_.Drop();
    agent_.reset();
    unsetenv("ATTUNE_RCLONE");
  }

  static void Use(const std::string& rclone) { setenv("ATTUNE_RCLONE", rclone.c_str(), 1); }
  void StartAgent() {
    auto agent = Agent::Start({.channel = server_.Channel(),
                               .token = "a token",
                               .name = "host-a",
                               .address = "10.0.0.1",
                               .resources = {.cpus = 1, .gpus = 0, .memory_bytes = 1 << 30},
                               .data_dir = dir_.path()});
    ASSERT_TRUE(agent.ok()) << agent.error().message;
    agent_ = std::move(agent.value());
  }

  v1::Upload Wanted() {
    const std::filesystem::path folder =
        gang::Folders(dir_.path()).Checkpoints({.sweep = 1, .trial = 3}) /
        gang::CheckpointFolder(9, 2);
    v1::Upload upload;
    upload.mutable_checkpoint()->set_sweep(1);
    upload.mutable_checkpoint()->set_trial(3);
    upload.mutable_checkpoint()->set_attempt(2);
    upload.mutable_checkpoint()->set_step(9);
    upload.set_path(folder);
    upload.set_digest(WriteCheckpoint(folder, "model"));
    upload.set_address(rclone_.Address());
    upload.set_stored("checkpoints/copy");
    return upload;
  }
  void Send(const v1::Upload& upload) {
    v1::ToExecutor message;
    *message.mutable_uploads()->add_uploads() = upload;
    server_.Send(message);
  }
  std::string NextProblem() {
    return server_
        .Next([](const v1::FromExecutor& message) {
          return message.has_storage() ? std::optional(message.storage()) : std::nullopt;
        })
        .value_or(v1::StorageStatus())
        .problem();
  }

  FakeRclone rclone_;
  gang::TempDir dir_;
  FakeServer server_;
  std::unique_ptr<Agent> agent_;
};

TEST_F(AgentStorageTest, HelloSaysWhetherRcloneIsThere) {
  StartAgent();
  EXPECT_TRUE(server_.NextHello().stores());
  server_.Drop();
  agent_.reset();
  Use("/nonexistent/rclone");
  StartAgent();
  EXPECT_FALSE(server_.NextHello().stores());
}

TEST_F(AgentStorageTest, UploadsACheckpointAndReportsIt) {
  StartAgent();
  server_.Welcome();
  const v1::Upload wanted = Wanted();
  Send(wanted);
  const v1::Fact fact = server_.NextFact(v1::Fact::kStored);
  EXPECT_EQ(fact.stored().checkpoint().step(), 9);
  EXPECT_EQ(fact.stored().digest(), wanted.digest());
  EXPECT_EQ(fact.stored().address(), rclone_.Address());
  EXPECT_TRUE(std::filesystem::exists(rclone_.Store() / "checkpoints/copy/manifest.json"));
}

TEST_F(AgentStorageTest, ReportsWhyUploadsArePaused) {
  rclone_.SetKey("another");
  StartAgent();
  server_.Welcome();
  Send(Wanted());
  EXPECT_THAT(NextProblem(), testing::HasSubstr("AccessDenied"));
}

}  // namespace
}  // namespace attune::agent
