#include "system/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "base/result.h"
#include "system/unique_fd.h"
#include "tests/support/scratch_folder.h"

namespace attune {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

ptrdiff_t CountFiles(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), {});
}

TEST(WriteWhole, ReplacesTheFileAndLeavesNoOtherFile) {
  const testing::ScratchFolder folder;
  for (const char* text : {"one", "another"}) {
    ASSERT_TRUE(WriteWhole(folder / "server", text, kReadableByAll).ok());
    EXPECT_EQ(ReadWhole(folder / "server").value(), text);
  }
  EXPECT_EQ(CountFiles(folder.path()), 1);
}

TEST(WriteWhole, GivesTheFileItsModeWhateverTheMask) {
  const testing::ScratchFolder folder;
  const mode_t before = umask(0077);
  for (const mode_t mode : {kPrivate, kReadableByAll}) {
    ASSERT_TRUE(WriteWhole(folder / "file", "text", mode).ok());
    EXPECT_EQ(fs::status(folder / "file").permissions(), fs::perms(mode));
  }
  umask(before);
}

TEST(WriteWhole, KeepsAndNamesAFileThatItCannotReplace) {
  const testing::ScratchFolder folder;
  fs::create_directories(folder / "server/inside");
  const Status written = WriteWhole(folder / "server", "one", kPrivate);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, ErrorCode::kDenied);
  EXPECT_THAT(written.error().message, HasSubstr(folder / "server"));
  EXPECT_EQ(CountFiles(folder.path()), 1);
}

TEST(WriteWhole, NeverShowsPartialTextToConcurrentReaders) {
  const testing::ScratchFolder folder;
  std::vector<std::thread> writers;
  for (const char digit : {'1', '2'}) {
    writers.emplace_back([&folder, digit] {
      for (int i = 0; i < 20; ++i)
        EXPECT_TRUE(WriteWhole(folder / "file", std::string(5000, digit), kPrivate).ok());
    });
  }
  for (int i = 0; i < 50; ++i) {
    const std::string text = ReadWhole(folder / "file").value();
    EXPECT_TRUE(text.empty() || text == std::string(5000, text[0])) << text.size();
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(CountFiles(folder.path()), 1);
}

TEST(WriteAt, WritesAtItsOffset) {
  const testing::ScratchFolder folder;
  const UniqueFd file(open((folder / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_TRUE(WriteAt(file.get(), "abcdef", 0));
  EXPECT_TRUE(WriteAt(file.get(), "XY", 2));
  EXPECT_EQ(ReadWhole(folder / "file").value(), "abXYef");
  EXPECT_FALSE(WriteAt(-1, "x", 0));
}

TEST(ReadWord, EndsBeforeBlanksAndIsEmptyWithoutAFile) {
  const testing::ScratchFolder folder;
  std::ofstream(folder / "word") << "secret \n\n";
  EXPECT_EQ(ReadWord(folder / "word").value(), "secret");
  EXPECT_EQ(ReadWord(folder / "absent").value(), "");
  EXPECT_EQ(ReadWord(folder.path()).error().code, ErrorCode::kDenied) << "a folder is no file";
}

TEST(LockFile, IsHeldByOneUntilItIsClosed) {
  const testing::ScratchFolder folder;
  auto first = LockFile(folder / "lock", kPrivate);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(LockFile(folder / "lock", kPrivate).error().code, ErrorCode::kConflict);
  first->reset();
  EXPECT_TRUE(LockFile(folder / "lock", kPrivate).ok());
  EXPECT_EQ(LockFile(folder / "no/folder", kPrivate).error().code, ErrorCode::kDenied);
}

}  // namespace
}  // namespace attune
