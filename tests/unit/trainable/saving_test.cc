// Saving of a gang of real ranks, with the test as their executor.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "system/unique_fd.h"
#include "tests/unit/trainable/process.h"

namespace attune::inline sdk::trainable::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Saving : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "saving-XXXXXX";
    folder_ = mkdtemp(name.data());
    start_ = {{"checkpoint_dir", folder_ / "checkpoints"}, {"max_step", 5}};
    environment_ = {{"GANG_PROGRAM_FORM", "checkpoints"}};
  }
  void TearDown() override { fs::remove_all(folder_); }

  FakeGang Gang(int world_size, const std::string& mode) {
    start_["config"] = {{"mode", mode}};
    return FakeGang(world_size, start_, environment_);
  }

  // A disk that blocks until disk() is opened for writing.
  void SlowDisk() {
    ASSERT_EQ(mkfifo(disk().c_str(), 0600), 0);
    environment_["GANG_PROGRAM_FSYNC"] = disk();
  }
  fs::path disk() const { return folder_ / "disk"; }

  fs::path folder_;
  json start_;
  Environment environment_;
};

// Returns "report 2", "checkpoint 2" and so on, in the order of arrival.
std::vector<std::string> Steps(const std::vector<json>& messages) {
  std::vector<std::string> steps;
  for (const json& message : messages) {
    if (message.contains("step")) {
      steps.push_back(message["type"].get<std::string>() + " " + message["step"].dump());
    }
  }
  return steps;
}

TEST_F(Saving, RunsInTheBackgroundAndReportsWaitForIt) {
  SlowDisk();
  start_["checkpoint_every"] = 2;
  FakeGang gang = Gang(1, "background");
  while (gang.Await(0, "progress")["step"] != 3) {
  }
  EXPECT_THAT(Steps(gang.received(0)), Not(Contains("report 2")));
  const UniqueFd back(open(disk().c_str(), O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(gang.AwaitWaiting()["step"], 5);
  std::vector<std::string> reports;
  for (const std::string& step : Steps(gang.received(0))) {
    if (!step.starts_with("progress")) reports.push_back(step);
  }
  EXPECT_THAT(reports, ElementsAre("report 1", "checkpoint 2", "report 2", "report 3",
                                   "checkpoint 4", "report 4", "checkpoint 5", "report 5"));
}

TEST_F(Saving, DoesNotDelayLoggedValues) {
  SlowDisk();
  start_["checkpoint_every"] = 2;
  FakeGang gang = Gang(2, "logs");
  gang.RelayRendezvous();
  for (const double at : {0.5, 1.5, 2.5}) {
    const json logged = gang.Await(0, "log");
    EXPECT_EQ(logged["step"], at);
    EXPECT_EQ(logged["metrics"]["step"], at + 0.5);
  }
  EXPECT_THAT(Steps(gang.received(0)), AllOf(Contains("report 1"), Not(Contains("report 2"))));
  while (gang.Await(1, "progress")["step"] != 3) {
  }
  EXPECT_THAT(Steps(gang.received(1)), Each(StartsWith("progress")))
      << "only rank 0 says something";
  const UniqueFd back(open(disk().c_str(), O_WRONLY | O_CLOEXEC));
}

TEST_F(Saving, InTheBackgroundKeepsAnAnnouncedSilence) {
  SlowDisk();
  start_["checkpoint_every"] = 1;
  FakeGang gang = Gang(1, "announces");
  const auto announced = [&] { return gang.Await(0, "heartbeat")["silence_ms"].get<int>(); };
  while (announced() != 7'200'000) {
  }
  const UniqueFd back(open(disk().c_str(), O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(gang.Await(0, "report")["step"], 1);
  const int left = announced();
  EXPECT_GT(left, 7'000'000);
  EXPECT_LE(left, 7'200'000);
}

TEST_F(Saving, HappensAtEachReportIfTheEndIsUnknown) {
  start_["max_step"] = 0;
  FakeGang gang = Gang(1, "foreground");
  for (const int step : {1, 2, 3}) EXPECT_EQ(gang.Await(0, "checkpoint")["step"], step);
}

TEST_F(Saving, BlocksOnRequest) {
  start_["checkpoint_every"] = 2;
  FakeGang gang = Gang(1, "foreground");
  EXPECT_EQ(gang.Await(0, "checkpoint")["step"], 2);
  EXPECT_THAT(Steps(gang.received(0)), Not(Contains("progress 2")));
}

TEST_F(Saving, ThatFailsFailsTheRankWithoutAReport) {
  environment_["GANG_PROGRAM_FSYNC"] = "fails";
  start_["checkpoint_every"] = 2;
  FakeGang gang = Gang(1, "background");
  const json error = gang.Await(0, "error");
  EXPECT_THAT(error["message"], AllOf(HasSubstr("checkpoints"), HasSubstr("Input/output error")));
  EXPECT_EQ(error["disk_full"], false);
  EXPECT_THAT(Steps(gang.received(0)), Not(Contains("report 2")));
  EXPECT_EQ(gang.Wait(0), 1);
}

TEST_F(Saving, ReportsAFullQuota) {
  environment_["GANG_PROGRAM_FSYNC"] = "full";
  start_["checkpoint_every"] = 2;
  FakeGang gang = Gang(1, "background");
  const json error = gang.Await(0, "error");
  EXPECT_THAT(error["message"], HasSubstr(std::strerror(EDQUOT)));
  EXPECT_EQ(error["disk_full"], true);
}

// The library that saves does not report why it failed.
TEST_F(Saving, DetectsAFullDiskForAnyException) {
  const fs::path checkpoints = folder_ / "checkpoints";
  fs::create_directory(checkpoints);
  {
    FakeGang gang = Gang(1, "fails");
    EXPECT_EQ(gang.Await(0, "error")["disk_full"], false);
  }
  if (mount("tmpfs", checkpoints.c_str(), "tmpfs", 0, "size=512k") != 0)
    GTEST_SKIP() << "may not mount a small disk";
  FakeGang gang = Gang(1, "fails");
  const json error = gang.Await(0, "error");
  EXPECT_THAT(error["message"], HasSubstr("write failed"));
  EXPECT_EQ(error["disk_full"], true);
  umount2(checkpoints.c_str(), MNT_DETACH);
}

TEST_F(Saving, PutsShardsOfAllRanksIntoOneCheckpoint) {
  start_["checkpoint_every"] = 3;
  environment_["GANG_PROGRAM_FORM"] = "split";
  json checkpoint;
  {
    FakeGang gang = Gang(2, "");
    gang.RelayRendezvous();
    checkpoint = gang.Await(0, "checkpoint");
    EXPECT_EQ(checkpoint["step"], 3);
  }
  start_["resume"] = {{"step", 3}, {"path", checkpoint["path"]}, {"digest", checkpoint["digest"]}};
  FakeGang resumed = Gang(1, "");
  EXPECT_EQ(resumed.AwaitWaiting()["metrics"]["weight"], 3) << resumed.Output();
}

TEST_F(Saving, KeepsTheFolderOfRankZeroOnly) {
  FakeGang gang = Gang(2, "directory");
  gang.RelayRendezvous();
  for (int step = 1; step <= 5; ++step) {
    const json checkpoint = gang.Await(0, "checkpoint");
    EXPECT_EQ(checkpoint["step"], step);
    EXPECT_TRUE(fs::exists(fs::path(checkpoint["path"].get<std::string>()) / "model.pt"));
  }
  EXPECT_EQ(gang.AwaitWaiting()["step"], 5);
  gang.Verdict(5, "stop");
  EXPECT_EQ(gang.Wait(0), 0);
  EXPECT_EQ(gang.Wait(1), 0);
  for (const auto& entry : fs::directory_iterator(folder_ / "checkpoints")) {
    EXPECT_THAT(entry.path().filename().string(), StartsWith("step-"));
  }
}

TEST_F(Saving, CopiesFilesOfTheProgram) {
  FakeGang gang = Gang(1, "own");
  const json checkpoint = gang.Await(0, "checkpoint");
  EXPECT_EQ(checkpoint["step"], 1);
  EXPECT_TRUE(fs::exists(fs::path(checkpoint["path"].get<std::string>()) / "model.pt"));
}

}  // namespace
}  // namespace attune::inline sdk::trainable::testing
