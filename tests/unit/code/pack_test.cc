#include "code/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/result.h"
#include "tests/support/scratch_folder.h"

namespace attune::code {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<File> Files() {
  return {{.path = "a", .bytes = 3}, {.path = "empty", .bytes = 0}, {.path = "b", .bytes = 4}};
}

std::vector<std::string> Parts(uint64_t offset, uint64_t limit) {
  const std::vector<File> files = Files();
  std::vector<std::string> texts;
  for (const PackPart& part : PartsOfPack(files, offset, limit))
    texts.push_back(part.file->path + " " + std::to_string(part.offset) + "+" +
                    std::to_string(part.bytes));
  return texts;
}

TEST(CodePack, SplitsARangeIntoPartsOfFiles) {
  EXPECT_EQ(PackBytes(Files()), 7u);
  EXPECT_THAT(Parts(0, 100), ElementsAre("a 0+3", "b 0+4"));
  EXPECT_THAT(Parts(0, 3), ElementsAre("a 0+3"));
  EXPECT_THAT(Parts(2, 3), ElementsAre("a 2+1", "b 0+2"));
  EXPECT_THAT(Parts(3, 1), ElementsAre("b 0+1"));
  EXPECT_THAT(Parts(5, 100), ElementsAre("b 2+2"));
  EXPECT_THAT(Parts(7, 100), IsEmpty());
  EXPECT_THAT(Parts(1'000, 100), IsEmpty());
}

class CodePackFiles : public ::testing::Test {
 protected:
  CodePackFiles() {
    std::ofstream(folder_ / "a") << "abc";
    std::ofstream(folder_ / "b") << "defg";
  }
  Result<checkpoints::Piece> Read(uint64_t offset, uint64_t limit) {
    return ReadPack(files_, offset, limit, [&](const File& file) {
      return checkpoints::OpenFile(folder_.path(), file.path);
    });
  }

  attune::testing::ScratchFolder folder_;
  const std::vector<File> files_ = Files();
};

TEST_F(CodePackFiles, ReadsAcrossFiles) {
  EXPECT_EQ(Read(0, 100)->data, "abcdefg");
  EXPECT_EQ(Read(0, 100)->file_bytes, 7u);
  EXPECT_EQ(Read(2, 2)->data, "cd");
  EXPECT_EQ(Read(7, 100)->data, "");
}

TEST_F(CodePackFiles, RefusesAFileThatBecameShorter) {
  std::ofstream(folder_ / "b") << "de";
  EXPECT_EQ(Read(0, 100).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(Read(0, 3)->data, "abc");
}

TEST_F(CodePackFiles, PassesErrorsOn) {
  std::filesystem::remove(folder_ / "a");
  EXPECT_EQ(Read(0, 100).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace attune::code
