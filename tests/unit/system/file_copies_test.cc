#include "system/file_copies.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/scratch_folder.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

class FileCopies : public ::testing::Test {
 protected:
  fs::path Write(const fs::path& file, const std::string& text) const {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
    return file;
  }

  const testing::ScratchFolder scratch_;
  const fs::path folder_ = scratch_.path();
};

TEST_F(FileCopies, AStampStaysUntilTheFileChanges) {
  const fs::path file = Write(folder_ / "file", "text");
  const std::string before = FileStamp(file).value();
  EXPECT_EQ(FileStamp(file).value(), before);
  fs::permissions(file, fs::perms::owner_read);
  const std::string read_only = FileStamp(file).value();
  EXPECT_NE(read_only, before);
  fs::copy_file(file, folder_ / "copy");
  fs::rename(folder_ / "copy", file);
  EXPECT_NE(FileStamp(file).value(), read_only);
}

TEST_F(FileCopies, AMissingFileHasNoStamp) {
  EXPECT_EQ(FileStamp(folder_ / "absent").error().code, ErrorCode::kDenied);
}

TEST_F(FileCopies, SwapsAFolderInForNoneOrForAnother) {
  Write(folder_ / "draft/first", "");
  ASSERT_TRUE(SwapFolderIn(folder_ / "draft", folder_ / "out").ok());
  EXPECT_TRUE(fs::exists(folder_ / "out/first"));
  Write(folder_ / "draft/second", "");
  ASSERT_TRUE(SwapFolderIn(folder_ / "draft", folder_ / "out").ok());
  EXPECT_TRUE(fs::exists(folder_ / "out/second"));
  EXPECT_TRUE(fs::exists(folder_ / "draft/first"));
}

TEST_F(FileCopies, NamesTheFolderThatCannotBeMade) {
  EXPECT_FALSE(SwapFolderIn(folder_ / "absent", folder_ / "out").ok());
}

}  // namespace
}  // namespace attune
