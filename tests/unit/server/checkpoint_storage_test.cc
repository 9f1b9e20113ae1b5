#include "server/checkpoint_storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoints/manifest.h"
#include "tests/support/scratch_folder.h"

namespace attune::server {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

CheckpointId Id(uint32_t trial, uint32_t attempt, int64_t step) {
  return {TrialId(SweepId{1}, TrialNumber{trial}), attempt, Step(step)};
}

TEST(CheckpointStorage, RemovesUnfinishedCopiesExceptThoseOfTheBest) {
  const attune::testing::ScratchFolder scratch;
  const auto storage = CheckpointStorage::Open(scratch.path(), "me").value();
  const fs::path sweep = scratch / "s1";
  const auto make = [&](const std::string& name) { fs::create_directories(sweep / name); };
  make("0/2-900");
  make("0/.2-900.part-0123");
  make("0/.2-90.part-0123");
  make("0/.removed-2-800");
  make("1/.2-900.part-0123");
  storage.RemoveUnfinished(SweepId{1}, {Id(0, 2, 900)});
  std::vector<std::string> left;
  for (const auto& entry : fs::recursive_directory_iterator(sweep)) {
    if (entry.path().parent_path().parent_path() == sweep)
      left.push_back(fs::relative(entry.path(), sweep));
  }
  EXPECT_THAT(left, UnorderedElementsAre("0/2-900", "0/.2-900.part-0123"));
  EXPECT_THAT(storage.ListCopies(SweepId{1}), UnorderedElementsAre(Id(0, 2, 900)));
}

// After a backup was restored, another checkpoint may have the name of an earlier copy.
TEST(CheckpointStorage, ACopyWithAnotherDigestIsNotTheCheckpoint) {
  const attune::testing::ScratchFolder scratch;
  const auto storage = CheckpointStorage::Open(scratch.path(), "me").value();
  const CheckpointId id = Id(0, 2, 900);
  const std::string manifest = "{}";
  EXPECT_FALSE(storage.Has(id, checkpoints::DigestOf(manifest)));
  fs::create_directories(storage.FolderOf(id));
  std::ofstream(storage.FolderOf(id) / "manifest.json") << manifest;
  EXPECT_TRUE(storage.Has(id, checkpoints::DigestOf(manifest)));
  EXPECT_FALSE(storage.Has(id, checkpoints::DigestOf("[]")));
}

TEST(CheckpointStorage, RefusesTheFolderOfAnotherServer) {
  const attune::testing::ScratchFolder scratch;
  ASSERT_TRUE(CheckpointStorage::Open(scratch.path(), "me").ok());
  EXPECT_TRUE(CheckpointStorage::Open(scratch.path(), "me").ok());
  const auto other = CheckpointStorage::Open(scratch.path(), "you");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, ErrorCode::kConflict);
}

TEST(CheckpointStorage, TakesAFolderWithAnEmptyMark) {
  const attune::testing::ScratchFolder scratch;
  std::ofstream(scratch / "attune-storage").close();
  EXPECT_TRUE(CheckpointStorage::Open(scratch.path(), "me").ok());
  EXPECT_FALSE(CheckpointStorage::Open(scratch.path(), "you").ok());
}

TEST(CheckpointStorage, RefusesAFolderWithAnUnreadableMark) {
  const attune::testing::ScratchFolder scratch;
  fs::create_directory(scratch / "attune-storage");
  const auto opened = CheckpointStorage::Open(scratch.path(), "me");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kDenied);
  EXPECT_THAT(opened.error().message, HasSubstr("--storage-path: "));
}

}  // namespace
}  // namespace attune::server
