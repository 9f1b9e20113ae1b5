#include "executor/transfer/remover.h"

#include <gmock/gmock.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <condition_variable>

#include "tests/unit/executor/harness.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Marks of folders.
constexpr char kTheirs[] = "1";
constexpr char kOurs[] = "2";

class RemoverTest : public testing::Test {
 protected:
  // The removal of a checkpoint of trial 3 of sweep 1, saved by attempt 2.
  v1::CheckpointRemoval Removal(int64_t step) {
    v1::CheckpointRemoval removal;
    removal.set_sweep(1);
    removal.set_trial(3);
    removal.set_attempt(2);
    removal.set_step(step);
    removal.set_path(Path(step));
    return removal;
  }

  fs::path Path(int64_t step) {
    return checkpoints_ / ("step-" + std::to_string(step) + "-attempt-2");
  }

  v1::CheckpointRemoval OfAnotherTrial(int64_t step) {
    v1::CheckpointRemoval removal = Removal(step);
    removal.set_trial(4);
    removal.set_path(folders_.Checkpoints({.sweep = 1, .trial = 4}) / Path(step).filename());
    return removal;
  }

  void MakeCheckpoint(int64_t step) {
    fs::create_directories(Path(step));
    gang::WriteFile(Path(step) / "manifest.json", "{}");
  }

  void SetRemovals(const std::vector<v1::CheckpointRemoval>& checkpoints,
                   const std::vector<uint64_t>& sweeps = {}) {
    Removals removals{.checkpoints = {checkpoints.begin(), checkpoints.end()}};
    for (const uint64_t sweep : sweeps) removals.sweeps.push_back({sweep, 2});
    remover_->SetRemovals(removals);
  }

  void AddRemoved(int64_t removed) {
    const std::lock_guard lock(mutex_);
    removed_.push_back(removed);
    changed_.notify_all();
  }

  // The step of the next checkpoint that is reported as deleted; for a sweep, its negated number.
  int64_t NextRemoved() {
    std::unique_lock lock(mutex_);
    const bool came = changed_.wait_for(lock, gang::kDeadline, [&] { return !removed_.empty(); });
    if (!came) return -1;
    const int64_t step = removed_.front();
    removed_.erase(removed_.begin());
    return step;
  }

  std::vector<std::string> Left() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(checkpoints_)) {
      names.push_back(entry.path().filename());
    }
    std::ranges::sort(names);
    return names;
  }

  gang::TempDir dir_;
  gang::Folders folders_{dir_.path()};
  fs::path checkpoints_ = folders_.Checkpoints({.sweep = 1, .trial = 3});
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int64_t> removed_;
  std::unique_ptr<Remover> remover_ = std::make_unique<Remover>(
      folders_,
      Remover::Removed{
          .checkpoint =
              [this](const v1::CheckpointRemoval& removal) { AddRemoved(removal.step()); },
          .sweep = [this](uint64_t sweep) { AddRemoved(-static_cast<int64_t>(sweep)); },
          .gone = [this](const v1::CheckpointName& name) { AddRemoved(1'000 + name.step()); }});
};

TEST_F(RemoverTest, DeletesOnlyWantedCheckpoints) {
  MakeCheckpoint(1);
  MakeCheckpoint(2);
  SetRemovals({Removal(1)});
  EXPECT_EQ(NextRemoved(), 1);
  EXPECT_THAT(Left(), ElementsAre("step-2-attempt-2"));
}

TEST_F(RemoverTest, ReportsAMissingCheckpointAsDeleted) {
  SetRemovals({Removal(7)});
  EXPECT_EQ(NextRemoved(), 7);
}

TEST_F(RemoverTest, ReportsEachDeletionOnce) {
  SetRemovals({Removal(1)});
  SetRemovals({Removal(1)});
  EXPECT_EQ(NextRemoved(), 1);
  SetRemovals({Removal(1), Removal(2)});
  EXPECT_EQ(NextRemoved(), 2);
}

TEST_F(RemoverTest, FinishesADeletionAfterACrash) {
  fs::create_directories(checkpoints_ / ".removed-step-1-attempt-2");
  gang::WriteFile(checkpoints_ / ".removed-step-1-attempt-2" / "model.safetensors", "half");
  SetRemovals({Removal(1)});
  EXPECT_EQ(NextRemoved(), 1);
  EXPECT_THAT(Left(), IsEmpty());
}

TEST_F(RemoverTest, DeletesNothingOutsideOfTheTrialsCheckpoints) {
  const fs::path outside = dir_.path() / "step-1-attempt-2";
  fs::create_directories(outside);
  MakeCheckpoint(4);
  v1::CheckpointRemoval elsewhere = Removal(1);
  elsewhere.set_path(outside);
  v1::CheckpointRemoval climbing = Removal(2);
  climbing.set_path(checkpoints_ / "../../../../../../step-1-attempt-2");
  v1::CheckpointRemoval whole = Removal(3);
  whole.set_path(checkpoints_);
  v1::CheckpointRemoval another = Removal(3);
  another.set_path(Path(4));
  SetRemovals({elsewhere, climbing, whole, another, Removal(5)});
  EXPECT_EQ(NextRemoved(), 5);
  EXPECT_TRUE(fs::exists(outside));
  EXPECT_TRUE(fs::exists(Path(4)));
}

TEST_F(RemoverTest, DeletesAllFilesOfASweepAndNoOthers) {
  MakeCheckpoint(1);
  ASSERT_TRUE(gang::WriteSweepMark(folders_.Sweep(1), kTheirs).ok());
  ASSERT_TRUE(gang::WriteSweepMark(folders_.Sweep(1), kOurs).ok());
  gang::WriteFile(folders_.Sweep(1) / "notes.txt", "of anybody's");
  const fs::path other = folders_.Checkpoints({.sweep = 11, .trial = 3});
  fs::create_directories(other);
  const fs::path half = folders_.Sweep(1).parent_path() / ".removed-s1";
  fs::create_directories(half / "trials");  // left by a deletion that a crash has interrupted
  SetRemovals({}, {1, 7});
  EXPECT_EQ(NextRemoved(), -1);
  EXPECT_EQ(NextRemoved(), -7);
  EXPECT_FALSE(fs::exists(folders_.Sweep(1)));
  EXPECT_FALSE(fs::exists(half));
  EXPECT_TRUE(fs::exists(other));
}

TEST_F(RemoverTest, DiscardsFoldersWithoutAReport) {
  const fs::path folder = checkpoints_ / ".attempt-2-resumed-1";
  fs::create_directories(folder / "inside");
  remover_->Discard(folder);
  SetRemovals({Removal(1)});
  EXPECT_EQ(NextRemoved(), 1);
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(RemoverTest, KeepsAnotherServersSweepOfTheSameNumber) {
  for (const uint64_t sweep : {2, 3}) fs::create_directories(folders_.Sweep(sweep) / "trials");
  ASSERT_TRUE(gang::WriteSweepMark(folders_.Sweep(2), kTheirs).ok());
  SetRemovals({}, {2, 3});
  EXPECT_EQ(NextRemoved(), -2);
  EXPECT_EQ(NextRemoved(), -3);
  EXPECT_TRUE(fs::exists(folders_.Sweep(2) / "trials"));
  EXPECT_TRUE(fs::exists(folders_.Sweep(3) / "trials")) << "the folder has no mark";
  fs::create_directories(folders_.Sweep(4) / "server");  // a folder, so it cannot be read as a mark
  SetRemovals({}, {4, 5});
  EXPECT_EQ(NextRemoved(), -5);
  EXPECT_TRUE(fs::exists(folders_.Sweep(4)));
  fs::create_directories(folders_.Sweep(1).parent_path() / ".removed-s9");
  fs::create_directories(folders_.Sweep(1).parent_path() / "s");
  fs::create_directories(folders_.Sweep(1).parent_path() / "s99999999999999999999");
  EXPECT_THAT(ListSweeps(folders_),
              ElementsAre(SweepFiles{2, 1}, SweepFiles{3, 0}, SweepFiles{4, 0}, SweepFiles{9, 0}));
}

TEST_F(RemoverTest, SetsALostSweepAsideAndKeepsAnotherOfItsNumber) {
  for (const uint64_t sweep : {2, 3}) fs::create_directories(folders_.Sweep(sweep) / "trials");
  ASSERT_TRUE(gang::WriteSweepMark(folders_.Sweep(2), kTheirs).ok());
  ASSERT_TRUE(gang::WriteSweepMark(folders_.Sweep(3), kOurs).ok());
  Removals removals;
  removals.lost_sweeps = {{2, 1}, {3, 1}};
  remover_->SetRemovals(removals);
  SetRemovals({Removal(7)});  // handled after the earlier ones
  EXPECT_EQ(NextRemoved(), 7);
  EXPECT_FALSE(fs::exists(folders_.Sweep(2)));
  EXPECT_TRUE(fs::exists(folders_.SetAside() / "s2-1" / "trials"));
  EXPECT_TRUE(fs::exists(folders_.Sweep(3) / "trials"));
}

TEST_F(RemoverTest, ReportsMissingCheckpointsOfAnInventory) {
  MakeCheckpoint(1);
  v1::Inventory inventory;
  for (const int64_t step : {1, 4}) {
    v1::CheckpointName& checkpoint = *inventory.add_checkpoints();
    checkpoint.set_sweep(1);
    checkpoint.set_trial(3);
    checkpoint.set_attempt(2);
    checkpoint.set_step(step);
  }
  remover_->FindMissing(inventory);
  EXPECT_EQ(NextRemoved(), 1'004);
  fs::remove_all(folders_.Sweeps());  // as if the data folder were not mounted
  remover_->FindMissing(inventory);
  SetRemovals({Removal(7)});
  EXPECT_EQ(NextRemoved(), 7);
}

// The server ignores reports from before the restore.
TEST_F(RemoverTest, ReportsDeletionsAgainAfterAnInventory) {
  MakeCheckpoint(1);
  SetRemovals({Removal(1)});
  EXPECT_EQ(NextRemoved(), 1);
  remover_->FindMissing({});
  SetRemovals({Removal(1)});
  EXPECT_EQ(NextRemoved(), 1);
}

TEST_F(RemoverTest, KeepsASweepThatCannotBeRead) {
  fs::create_directories(folders_.Sweep(1).parent_path());
  fs::create_directory_symlink(folders_.Sweep(1), folders_.Sweep(1));  // ELOOP
  SetRemovals({}, {1, 2});
  EXPECT_EQ(NextRemoved(), -2);
  EXPECT_TRUE(fs::is_symlink(folders_.Sweep(1)));
}

TEST_F(RemoverTest, LogsAFailureOnceAndRetries) {
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  // A file in place of the parent folder makes the deletion fail.
  fs::create_directories(checkpoints_.parent_path());
  gang::WriteFile(checkpoints_, "");
  for (int round = 2; round < 4; ++round) {
    SetRemovals({Removal(1), OfAnotherTrial(round)});
    EXPECT_EQ(NextRemoved(), round);
  }
  fs::remove(checkpoints_);
  SetRemovals({Removal(1)});
  EXPECT_EQ(NextRemoved(), 1);
  remover_.reset();
  spdlog::set_default_logger(before);
  const std::string text = log.str();
  const size_t first = text.find("cannot delete");
  ASSERT_NE(first, std::string::npos);
  EXPECT_NE(text.find(Path(1).string(), first), std::string::npos);
  EXPECT_EQ(text.find("cannot delete", first + 1), std::string::npos);
}

}  // namespace
}  // namespace attune::agent
