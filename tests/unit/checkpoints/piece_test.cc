#include "checkpoints/piece.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/result.h"

namespace attune::checkpoints {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class PieceTest : public testing::Test {
 protected:
  PieceTest() {
    std::string name = (fs::temp_directory_path() / "piece-XXXXXX").string();
    root_ = mkdtemp(name.data());
    folder_ = root_ / "step-3-attempt-1";
    fs::create_directories(folder_ / "state");
    Write(folder_ / "model.bin", "0123456789");
    Write(folder_ / "state" / "total.json", "{}");
    Write(root_ / "token", "secret");
  }
  ~PieceTest() override { fs::remove_all(root_); }

  static void Write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

  fs::path root_;
  fs::path folder_;
};

TEST_F(PieceTest, ReadsFromTheOffsetToTheLimitOrTheEnd) {
  const Piece middle = ReadPiece(folder_, "model.bin", 2, 3).value();
  EXPECT_EQ(middle.data, "234");
  EXPECT_EQ(middle.file_bytes, 10u);
  EXPECT_EQ(ReadPiece(folder_, "model.bin", 8, 100)->data, "89");
  EXPECT_EQ(ReadPiece(folder_, "model.bin", 10, 100)->data, "");
  EXPECT_EQ(ReadPiece(folder_, "model.bin", UINT64_MAX, UINT64_MAX)->data, "");
  EXPECT_EQ(ReadPiece(folder_, "state/total.json", 0, 100)->data, "{}");
}

TEST_F(PieceTest, IsAtMostTheMaximumLength) {
  Write(folder_ / "large", std::string(kPieceBytesMax + 1, 'x'));
  EXPECT_EQ(ReadPiece(folder_, "large", 0, UINT64_MAX)->data.size(), kPieceBytesMax);
  EXPECT_EQ(ReadPiece(folder_, "large", kPieceBytesMax, UINT64_MAX)->data, "x");
}

TEST_F(PieceTest, RefusesNamesOutsideTheFolder) {
  const std::string absolute = (root_ / "token").string();
  for (const std::string& name :
       {std::string("../token"), std::string("state/../../token"), absolute, std::string(""),
        std::string("."), std::string(".."), std::string("state//total.json"),
        std::string("state/"), std::string("./model.bin"), std::string("a\0b", 3),
        std::string(kNameBytesMax + 1, 'a')}) {
    EXPECT_NE(NameFault(name), "") << name;
    EXPECT_EQ(ReadPiece(folder_, name, 0, 100).error().code, ErrorCode::kNotFound) << name;
  }
  EXPECT_EQ(NameFault(std::string(kNameBytesMax, 'a')), "");
  EXPECT_EQ(NameFault("..a/b.."), "");
}

TEST_F(PieceTest, DoesNotFollowLinks) {
  fs::create_symlink(root_ / "token", folder_ / "link");
  fs::create_directory_symlink(root_, folder_ / "up");
  fs::create_directory_symlink(folder_, root_ / "step-4-attempt-1");
  EXPECT_THAT(ReadPiece(folder_, "link", 0, 100).error().message, HasSubstr("link, and links"));
  EXPECT_FALSE(ReadPiece(folder_, "up/token", 0, 100).ok());
  EXPECT_FALSE(ReadPiece(root_ / "step-4-attempt-1", "model.bin", 0, 100).ok());
}

TEST_F(PieceTest, ReadsOnlyRegularFiles) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(ReadPiece(folder_, "pipe", 0, 1).error().message, HasSubstr("regular file"));
  EXPECT_THAT(ReadPiece(folder_, "state", 0, 1).error().message, HasSubstr("regular file"));
  EXPECT_THAT(ReadPiece(folder_, "absent", 0, 1).error().message, HasSubstr(std::strerror(ENOENT)));
}

}  // namespace
}  // namespace attune::checkpoints
