#include "checkpoints/removal.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <string>

namespace attune::checkpoints {
namespace {

namespace fs = std::filesystem;

class RemovalTest : public testing::Test {
 protected:
  RemovalTest() {
    std::string name = (fs::temp_directory_path() / "removal-XXXXXX").string();
    root_ = mkdtemp(name.data());
    folder_ = root_ / "step-3";
    Make(folder_);
  }
  ~RemovalTest() override { fs::remove_all(root_); }

  static void Make(const fs::path& folder) {
    fs::create_directories(folder / "state");
    std::ofstream(folder / "state" / "total.json") << "{}";
  }

  fs::path root_, folder_;
};

TEST_F(RemovalTest, DeletesAFolderAndTheRestOfAnInterruptedDeletion) {
  EXPECT_EQ(PathOfRemoved(folder_), root_ / ".removed-step-3");
  Make(PathOfRemoved(folder_));
  EXPECT_FALSE(RemoveFolder(folder_));
  EXPECT_TRUE(fs::is_empty(root_));
  EXPECT_FALSE(RemoveFolder(folder_)) << "a missing folder is no error";
}

TEST_F(RemovalTest, DeletesTheRestOfAnInterruptedDeletionByItsName) {
  Make(PathOfRemoved(folder_));
  EXPECT_FALSE(RemoveFolder(PathOfRemoved(folder_)));
  EXPECT_TRUE(fs::exists(folder_));
  EXPECT_FALSE(fs::exists(PathOfRemoved(folder_)));
}

TEST_F(RemovalTest, ReportsAFolderThatCannotBeDeleted) {
  // A file cannot contain a folder.
  EXPECT_TRUE(RemoveFolder(folder_ / "state" / "total.json" / "step-4"));
  EXPECT_TRUE(fs::exists(folder_));
}

}  // namespace
}  // namespace attune::checkpoints
