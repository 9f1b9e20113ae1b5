#include "executor/gang/set_aside.h"

#include "executor/gang/folders.h"
#include "tests/unit/executor/harness.h"

namespace attune::gang {
namespace {

namespace fs = std::filesystem;

class SetAsideTest : public testing::Test {
 protected:
  GangSpec Spec(uint32_t attempt, uint64_t identity) {
    GangSpec spec;
    spec.attempt = {.sweep = 2, .trial = 3, .attempt = attempt, .epoch = 40 + attempt};
    spec.identity = identity;
    spec.ranks = {{.rank = 0}};
    spec.sweep_dir = folders_.Sweep(2);
    spec.attempt_dir = folders_.Attempt(spec.attempt);
    spec.checkpoint_dir = folders_.Checkpoints(spec.attempt);
    spec.files_dir = folders_.Files(spec.attempt);
    spec.set_aside_dir = folders_.SetAside();
    return spec;
  }
  // Makes the files that an attempt leaves in the data folder.
  void Leave(const GangSpec& spec, int64_t step) {
    fs::create_directories(spec.attempt_dir);
    WriteFile(spec.attempt_dir / "rank-0.log", "text");
    fs::create_directories(Checkpoint(spec, step));
    fs::create_directories(spec.files_dir);
  }
  static fs::path Checkpoint(const GangSpec& spec, int64_t step) {
    return spec.checkpoint_dir / CheckpointFolder(step, spec.attempt.attempt);
  }

  TempDir dir_;
  Folders folders_{dir_.path()};
};

TEST_F(SetAsideTest, KeepsTheFolderOfThisLogsSweep) {
  const GangSpec spec = Spec(1, 7);
  ASSERT_TRUE(ClaimSweepFolder(spec).ok());
  EXPECT_EQ(ReadSweepMark(spec.sweep_dir).value(), "7");
  Leave(spec, 1);
  ASSERT_TRUE(ClaimSweepFolder(Spec(2, 7)).ok());
  EXPECT_TRUE(fs::exists(Checkpoint(spec, 1)));
  EXPECT_FALSE(fs::exists(folders_.SetAside()));
}

TEST_F(SetAsideTest, SetsTheFolderOfAnotherLogsSweepAside) {
  const GangSpec lost = Spec(1, 7);
  ASSERT_TRUE(ClaimSweepFolder(lost).ok());
  Leave(lost, 1);
  ASSERT_TRUE(ClaimSweepFolder(Spec(1, 8)).ok());
  EXPECT_EQ(ReadSweepMark(lost.sweep_dir).value(), "8");
  EXPECT_FALSE(fs::exists(Checkpoint(lost, 1)));
  EXPECT_TRUE(fs::exists(folders_.SetAside() / "s2-7" / "trials" / "3" / "checkpoints"));
  fs::create_directories(lost.sweep_dir / "trials");
  ASSERT_TRUE(ClaimSweepFolder(lost).ok());
  ASSERT_TRUE(ClaimSweepFolder(Spec(1, 8)).ok());
  EXPECT_TRUE(fs::exists(folders_.SetAside() / "s2-7.2")) << "no file is overwritten";
}

TEST_F(SetAsideTest, SetsAFolderWithoutAMarkAsideIfItHasFiles) {
  const GangSpec spec = Spec(1, 7);
  fs::create_directories(spec.sweep_dir);
  ASSERT_TRUE(ClaimSweepFolder(spec).ok());
  EXPECT_FALSE(fs::exists(folders_.SetAside())) << "a process died before it wrote the mark";
  fs::remove(spec.sweep_dir / "server");
  Leave(spec, 1);
  ASSERT_TRUE(ClaimSweepFolder(spec).ok());
  EXPECT_TRUE(fs::exists(folders_.SetAside() / "s2" / "trials"));
}

TEST_F(SetAsideTest, KeepsOnlyFilesOfATrialThatTheLogKnows) {
  const GangSpec first = Spec(1, 7);
  const GangSpec lost = Spec(2, 7);
  Leave(first, 4);
  Leave(first, 5);
  Leave(lost, 6);
  fs::create_directories(first.checkpoint_dir / ".attempt-2-half");
  GangSpec next = Spec(2, 7);
  next.attempt.epoch = 9'000;
  next.known = KnownFiles{.attempts = 1, .checkpoints = {CheckpointFolder(4, 1)}};
  ASSERT_TRUE(ClaimTrialFolder(next).ok());
  EXPECT_TRUE(fs::exists(Checkpoint(first, 4)));
  EXPECT_FALSE(fs::exists(Checkpoint(first, 5)));
  EXPECT_FALSE(fs::exists(Checkpoint(lost, 6)));
  EXPECT_FALSE(fs::exists(first.checkpoint_dir / ".attempt-2-half"));
  EXPECT_TRUE(fs::exists(RankLog(first.attempt_dir, 0)));
  EXPECT_FALSE(fs::exists(RankLog(lost.attempt_dir, 0)));
  EXPECT_TRUE(fs::exists(first.files_dir));
  const fs::path aside = folders_.SetAside() / "s2-trial-3-epoch-9000";
  EXPECT_TRUE(fs::exists(aside / "attempts" / "2" / "rank-0.log"));
  EXPECT_TRUE(fs::exists(aside / "checkpoints" / CheckpointFolder(6, 2)));

  // The claim of another executor of this data folder, or a second claim of this one.
  Leave(next, 7);
  ASSERT_TRUE(ClaimTrialFolder(next).ok());
  EXPECT_TRUE(fs::exists(Checkpoint(next, 7)));
}

TEST_F(SetAsideTest, SetsAllFilesOfANewTrialAside) {
  const GangSpec lost = Spec(1, 7);
  Leave(lost, 4);
  GangSpec next = Spec(1, 7);
  next.attempt.epoch = 9'000;
  next.known = KnownFiles{};
  ASSERT_TRUE(ClaimTrialFolder(next).ok());
  EXPECT_FALSE(fs::exists(lost.files_dir));
  EXPECT_TRUE(fs::exists(folders_.SetAside() / "s2-trial-3-epoch-9000" / "files"));
}

TEST_F(SetAsideTest, KeepsAllFilesOfATrialWithoutARestore) {
  const GangSpec spec = Spec(1, 7);
  Leave(spec, 4);
  ASSERT_TRUE(ClaimTrialFolder(Spec(1, 7)).ok());
  EXPECT_TRUE(fs::exists(Checkpoint(spec, 4)));
}

TEST_F(SetAsideTest, AMissingCheckpointIsGoneIfItsSweepExists) {
  GangSpec spec = Spec(2, 7);
  spec.resume = Resume{.step = 4, .path = Checkpoint(Spec(1, 7), 4)};
  EXPECT_FALSE(IsResumeGone(spec)) << "the data folder may not be mounted";
  ASSERT_TRUE(ClaimSweepFolder(spec).ok());
  EXPECT_TRUE(IsResumeGone(spec));
  Leave(Spec(1, 7), 4);
  EXPECT_FALSE(IsResumeGone(spec));
  spec.resume->path = "/elsewhere/step-4-attempt-1";
  EXPECT_FALSE(IsResumeGone(spec)) << "the checkpoint of another host";
}

TEST(ParseCheckpointFolder, ReadsThePathOfAFolder) {
  const Folders folders("/data");
  const fs::path folder = folders.Checkpoints({.sweep = 2, .trial = 3}) / CheckpointFolder(900, 4);
  const auto name = ParseCheckpointFolder(folder);
  ASSERT_TRUE(name);
  EXPECT_EQ(ToString(*name), "s2/3/4-900");
  EXPECT_FALSE(ParseCheckpointFolder("/data/anything"));
}

}  // namespace
}  // namespace attune::gang
