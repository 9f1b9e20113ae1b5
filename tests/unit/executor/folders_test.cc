#include "executor/gang/folders.h"

#include "tests/unit/executor/harness.h"

namespace attune::gang {
namespace {

TEST(Folders, UseTheNamesOfSweepTrialAndAttempt) {
  const Folders folders("/data/attune");
  const AttemptId attempt{.sweep = 3, .trial = 17, .attempt = 2, .epoch = 9};
  EXPECT_EQ(RankLog(folders.Attempt(attempt), 1),
            "/data/attune/sweeps/s3/trials/17/attempts/2/rank-1.log");
  EXPECT_EQ(folders.Checkpoints(attempt), "/data/attune/sweeps/s3/trials/17/checkpoints");
}

TEST(Folders, RelativeDataFolderIsMadeAbsolute) {
  EXPECT_TRUE(Folders("attune-data").Launchers().is_absolute());
}

class ReadLogTest : public testing::Test {
 protected:
  ReadLogTest() { WriteFile(path_, "0123456789"); }

  std::string Read(int64_t offset, uint32_t limit) {
    return ReadLog(path_, offset, limit).value().data;
  }

  TempDir dir_;
  std::filesystem::path path_ = dir_.path() / "rank-0.log";
};

TEST_F(ReadLogTest, CountsFromEitherEnd) {
  EXPECT_EQ(Read(2, 3), "234");
  EXPECT_EQ(Read(-3, 100), "789");
  EXPECT_EQ(Read(-3, 2), "78");
}

TEST_F(ReadLogTest, MovesOffsetsOutsideToTheNearestEnd) {
  EXPECT_EQ(Read(-100, 4), "0123");
  EXPECT_EQ(Read(INT64_MIN, 4), "0123");
  EXPECT_EQ(Read(10, 4), "");
  EXPECT_EQ(Read(INT64_MAX, 4), "");
}

TEST_F(ReadLogTest, ReturnsTheOffsetOfThePiece) {
  const LogPiece piece = ReadLog(path_, -4, 2).value();
  EXPECT_EQ(piece.offset, 6u);
  EXPECT_EQ(piece.file_bytes, 10u);
}

TEST_F(ReadLogTest, NeverReadsMoreThanTheLimit) {
  WriteFile(path_, std::string(kLogReadBytesMax + 5, 'x'));
  EXPECT_EQ(Read(0, UINT32_MAX).size(), kLogReadBytesMax);
}

TEST_F(ReadLogTest, NamesAMissingLog) {
  const auto piece = ReadLog(dir_.path() / "rank-7.log", 0, 10);
  ASSERT_FALSE(piece.ok());
  EXPECT_THAT(piece.error().message, testing::HasSubstr("rank-7.log"));
}

}  // namespace
}  // namespace attune::gang
