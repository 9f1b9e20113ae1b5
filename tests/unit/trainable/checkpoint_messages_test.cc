// Checkpoints in the worker channel, from the side of a rank (docs/reference/worker-channel.md):
// their messages, and the folders at that time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "attune/checkpoint.h"
#include "tests/unit/trainable/process.h"

namespace attune::inline sdk::trainable::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class WorkerChannelCheckpoints : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "channel-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(WorkerChannelCheckpoints, PrecedeTheirReportAtMilestonesAndAtTheEnd) {
  FakeGang gang(2, {{"milestone", 2}, {"max_step", 3}, {"checkpoint_dir", folder_}});
  gang.RelayRendezvous();
  const auto first = gang.Await(0, "checkpoint");
  EXPECT_EQ(first["step"], 2);
  EXPECT_EQ(first["path"], (folder_ / "step-2-attempt-2").string());
  EXPECT_EQ(CheckpointReader(first["path"].get<std::string>(), first["digest"].get<std::string>())
                .ReadText("count"),
            "2");
  EXPECT_EQ(gang.Await(0, "report")["step"], 2);
  gang.Verdict(2, "continue", 3);
  EXPECT_EQ(gang.Await(0, "checkpoint")["step"], 3);
  EXPECT_EQ(gang.Await(0, "report")["step"], 3);
  gang.Verdict(3, "stop");
  EXPECT_EQ(gang.Wait(0), 0);
  EXPECT_EQ(gang.Wait(1), 0);
}

TEST_F(WorkerChannelCheckpoints, OccurOnlyAtMilestonesBeyondAnExtendedLastStep) {
  FakeGang gang(1, {{"milestone", 2}, {"max_step", 2}, {"checkpoint_dir", folder_}});
  EXPECT_EQ(gang.Await(0, "checkpoint")["step"], 2);
  gang.Verdict(2, "continue", 4);
  EXPECT_EQ(gang.Await(0, "checkpoint")["step"], 4);
  EXPECT_EQ(gang.Await(0, "report")["waits"], true);
  gang.Verdict(4, "stop");
  EXPECT_EQ(gang.Wait(0), 0);
}

TEST_F(WorkerChannelCheckpoints, OccurWhenRankZeroYields) {
  FakeGang gang(1, {{"milestone", 1'000'000}, {"checkpoint_dir", folder_}});
  gang.Send(0, {{"type", "yield"}});
  const auto checkpoint = gang.Await(0, "checkpoint");
  EXPECT_EQ(gang.AwaitWaiting()["step"], checkpoint["step"]);
}

TEST_F(WorkerChannelCheckpoints, OccurAtMultiplesOfCheckpointEvery) {
  FakeGang gang(1, {{"checkpoint_every", 2}, {"max_step", 5}, {"checkpoint_dir", folder_}});
  EXPECT_EQ(gang.Await(0, "checkpoint")["step"], 2);
  EXPECT_EQ(gang.Await(0, "checkpoint")["step"], 4);
  EXPECT_EQ(gang.Await(0, "checkpoint")["step"], 5);
}

TEST_F(WorkerChannelCheckpoints, AResumedTrialContinuesFromItsStep) {
  std::string path;
  {
    FakeGang gang(1, {{"milestone", 4}, {"checkpoint_dir", folder_}, {"attempt", 1}});
    path = gang.Await(0, "checkpoint")["path"];
    gang.Await(0, "report");
    gang.Verdict(4, "pause");
    EXPECT_EQ(gang.Wait(0), 0);
  }
  FakeGang gang(2, {{"max_step", 5}, {"resume", {{"step", 4}, {"path", path}}}});
  gang.RelayRendezvous();
  EXPECT_EQ(gang.Await(0, "report")["step"], 5);
  EXPECT_THAT(gang.Output(), HasSubstr("resumed: count 4"));
}

TEST_F(WorkerChannelCheckpoints, TimeAttrMakesAMetricTheTime) {
  const nlohmann::json measured{
      {"time_attr", "thirds"}, {"milestone", 2}, {"checkpoint_dir", folder_}};
  std::string path;
  {
    FakeGang gang(2, measured);
    gang.RelayRendezvous();
    const auto first = gang.Await(0, "report");  // steps 3, 4 and 5 have the same time
    EXPECT_EQ(first["step"], 1);
    EXPECT_EQ(first["metrics"]["step"], 3);
    const auto checkpoint = gang.Await(0, "checkpoint");
    EXPECT_EQ(checkpoint["step"], 2);
    path = checkpoint["path"];
    EXPECT_EQ(path, (folder_ / "step-2-attempt-2").string());
    EXPECT_EQ(gang.AwaitWaiting()["metrics"]["step"], 6);
    gang.Verdict(2, "pause");
    for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(gang.Wait(rank), 0);
    EXPECT_THAT(gang.Output(), HasSubstr("left: rank 1, step 6"));
  }
  nlohmann::json resumed = measured;
  resumed["resume"] = {{"step", 2}, {"path", path}};
  resumed["milestone"] = 3;
  FakeGang gang(2, resumed);
  gang.RelayRendezvous();
  const auto next = gang.AwaitWaiting();
  EXPECT_EQ(next["step"], 3);
  EXPECT_EQ(next["metrics"]["step"], 9);
  EXPECT_EQ(next["metrics"]["time"], 2) << "of the report before";
  EXPECT_THAT(gang.Output(), HasSubstr("resumed: count 6"));
  gang.Verdict(3, "stop");
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(gang.Wait(rank), 0);
}

TEST_F(WorkerChannelCheckpoints, WarnsIfTheLastReportFallsIntoTheSameUnitOfTime) {
  // All steps have the same time.
  FakeGang gang(1, {{"config", {{"mode", "stops"}}},
                    {"time_attr", "ranks"},
                    {"max_step", 9},
                    {"checkpoint_dir", folder_}});
  EXPECT_FALSE(gang.Await(0, "done").is_null());
  EXPECT_EQ(gang.Wait(0), 0);
  const std::vector<std::string> types = Types(gang.received(0));
  EXPECT_EQ(std::ranges::count(types, "report"), 1);
  EXPECT_THAT(types, Not(Contains("checkpoint")));
  EXPECT_THAT(gang.Output(), AllOf(HasSubstr("first report"), HasSubstr("last report"),
                                   HasSubstr("unit of ranks")));
}

TEST_F(WorkerChannelCheckpoints, AReportWithoutTheTimeMetricIsAnError) {
  FakeGang gang(1, {{"time_attr", "samples"}, {"max_step", 5}});
  EXPECT_THAT(gang.Await(0, "error")["message"],
              AllOf(HasSubstr("Report: "), HasSubstr("'samples'")));
}

TEST_F(WorkerChannelCheckpoints, RefusesToResumeFromADifferentCheckpoint) {
  std::string path;
  {
    FakeGang gang(1, {{"milestone", 4}, {"checkpoint_dir", folder_}});
    path = gang.Await(0, "checkpoint")["path"];
  }
  const std::string other = "sha256:" + std::string(64, 'a');
  FakeGang digest(1, {{"resume", {{"step", 4}, {"path", path}, {"digest", other}}}});
  EXPECT_THAT(digest.Await(0, "error")["message"], HasSubstr(" and not " + other));
  FakeGang step(1, {{"resume", {{"step", 3}, {"path", path}}}});
  EXPECT_THAT(step.Await(0, "error")["message"],
              AllOf(HasSubstr("of step 4"), HasSubstr("from step 3")));
}

TEST_F(WorkerChannelCheckpoints, TheNextAttemptRemovesIncompleteCheckpoints) {
  for (const char* name : {".attempt-1-aaaaaa", ".attempt-2-bbbbbb", "step-1-attempt-1"}) {
    fs::create_directory(folder_ / name);
    std::ofstream(folder_ / name / "model.safetensors") << "half";
  }
  FakeGang gang(1, {{"milestone", 1}, {"attempt", 2}, {"checkpoint_dir", folder_}});
  gang.Await(0, "report");
  EXPECT_FALSE(fs::exists(folder_ / ".attempt-1-aaaaaa"));
  EXPECT_TRUE(fs::exists(folder_ / ".attempt-2-bbbbbb")) << "of this attempt";
  EXPECT_TRUE(fs::exists(folder_ / "step-1-attempt-1"));
}

}  // namespace
}  // namespace attune::inline sdk::trainable::testing
