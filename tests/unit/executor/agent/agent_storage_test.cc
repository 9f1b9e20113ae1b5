#include <stdlib.h>

#include "executor/agent/agent.h"
#include "tests/unit/executor/agent/fake_server.h"
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
  v1::StorageStatus NextStatus() {
    return server_
        .Next([](const v1::FromExecutor& message) {
          return message.has_storage() ? std::optional(message.storage()) : std::nullopt;
        })
        .value_or(v1::StorageStatus());
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
  EXPECT_THAT(NextStatus().problem(), testing::HasSubstr("AccessDenied"));
}

TEST_F(AgentStorageTest, ReportsAnUploadWhoseFilesAreGone) {
  StartAgent();
  server_.Welcome();
  const v1::Upload wanted = Wanted();
  std::filesystem::remove_all(wanted.path());
  Send(wanted);
  EXPECT_THAT(NextStatus().skipped(), testing::ElementsAre(wanted.stored()));
}

TEST_F(AgentStorageTest, ReportsADamagedCopyBeforeTheEndOfItsGang) {
  const std::filesystem::path copy = rclone_.Store() / "checkpoints/copy";
  const std::string digest = WriteCheckpoint(copy, "model");
  gang::WriteFile(copy / "model", "MODEL");
  StartAgent();
  server_.Welcome();
  v1::Assignment assignment;
  assignment.mutable_attempt()->set_sweep(1);
  assignment.mutable_attempt()->set_trial(3);
  assignment.mutable_attempt()->set_attempt(2);
  assignment.mutable_attempt()->set_epoch(7);
  assignment.mutable_program()->add_command(ATTUNE_TEST_PLAIN_WORKER);
  assignment.set_world_size(1);
  assignment.add_ranks()->set_cpus(1);
  v1::ResumeFrom& resume = *assignment.mutable_resume();
  resume.set_step(9);
  resume.set_digest(digest);
  resume.set_path("/elsewhere/step-9-attempt-1");
  resume.mutable_fetch()->set_sweep(1);
  resume.mutable_fetch()->set_trial(3);
  resume.mutable_fetch()->set_attempt(1);
  resume.mutable_fetch()->set_step(9);
  resume.mutable_stored()->set_address(rclone_.Address());
  resume.mutable_stored()->set_path("checkpoints/copy");
  server_.SetDesired({assignment});
  const v1::Fact fact = server_.NextFact(v1::Fact::kStored);
  EXPECT_EQ(fact.stored().checkpoint().attempt(), 1u);
  EXPECT_EQ(fact.stored().checkpoint().step(), 9);
  EXPECT_EQ(fact.stored().digest(), digest);
  EXPECT_EQ(fact.stored().address(), "");
  const v1::Fact ended = server_.NextFact(v1::Fact::kEnded);
  EXPECT_EQ(ended.ended().failure().kind(), v1::Failure::HOST);
  EXPECT_THAT(ended.ended().failure().message(), testing::HasSubstr("model"));
}

}  // namespace
}  // namespace attune::agent
