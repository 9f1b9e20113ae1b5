#include "system/private_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/support/scratch_folder.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

mode_t ModeOf(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

void Create(const fs::path& path) {
  std::ofstream(path) << "x";
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
}

TEST(PrivateFilesTest, AnEmptyFolderIsHidden) {
  const testing::ScratchFolder scratch;
  fs::create_directory(scratch / "data");
  ASSERT_EQ(chmod((scratch / "data").c_str(), 0755), 0);
  EXPECT_TRUE(MakePrivate(scratch / "data", {"token"}));
  EXPECT_EQ(ModeOf(scratch / "data"), 0700u);
}

TEST(PrivateFilesTest, AnEarlierDataFolderIsHiddenWithItsFiles) {
  const testing::ScratchFolder scratch;
  fs::create_directory(scratch / "data");
  ASSERT_EQ(chmod((scratch / "data").c_str(), 0755), 0);
  Create(scratch / "data/token");
  Create(scratch / "data/attune.db");
  EXPECT_TRUE(MakePrivate(scratch / "data", {"token", "folder-id"}));
  EXPECT_EQ(ModeOf(scratch / "data"), 0700u);
  EXPECT_EQ(ModeOf(scratch / "data/attune.db"), 0600u);
}

TEST(PrivateFilesTest, AFolderWithAnotherPurposeStays) {
  const testing::ScratchFolder scratch;
  fs::create_directory(scratch / "home");
  ASSERT_EQ(chmod((scratch / "home").c_str(), 0755), 0);
  Create(scratch / "home/.profile");
  EXPECT_FALSE(MakePrivate(scratch / "home", {"token"}));
  EXPECT_EQ(ModeOf(scratch / "home"), 0755u);
  EXPECT_EQ(ModeOf(scratch / "home/.profile"), 0644u);
}

TEST(PrivateFilesTest, ASharedFolderWithTheStickyBitStays) {
  const testing::ScratchFolder scratch;
  fs::create_directory(scratch / "tmp");
  ASSERT_EQ(chmod((scratch / "tmp").c_str(), 01777), 0);
  EXPECT_FALSE(MakePrivate(scratch / "tmp", {"token"}));
  EXPECT_EQ(ModeOf(scratch / "tmp"), 01777u);
}

}  // namespace
}  // namespace attune
