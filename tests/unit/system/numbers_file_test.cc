#include "system/numbers_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/scratch_folder.h"

namespace attune {
namespace {

using Numbers = std::vector<uint64_t>;

TEST(NumbersFile, KeepsTheNewestNumbers) {
  const testing::ScratchFolder folder;
  NumbersFile file(folder / "mark", 2, 1);
  EXPECT_FALSE(file.Read());
  file.Write({UINT64_MAX, 1});
  file.Write({3, 4});
  EXPECT_EQ(file.Read(), (Numbers{3, 4}));
  ASSERT_TRUE(file.WriteDurably({0, 0}).ok());
  EXPECT_EQ(NumbersFile(folder / "mark", 2, 1).Read(), (Numbers{0, 0}));
}

TEST(NumbersFile, WritesACounterOnlyNowAndThen) {
  const testing::ScratchFolder folder;
  NumbersFile file(folder / "mark", 2, 1);
  const NumbersFile::Clock::time_point start;
  file.Write({7, 1}, start);
  file.Write({7, 2}, start + NumbersFile::kBetweenCounts / 2);
  EXPECT_EQ(file.Read(), (Numbers{7, 1}));
  file.Write({7, 3}, start + NumbersFile::kBetweenCounts);
  EXPECT_EQ(file.Read(), (Numbers{7, 3}));
  file.Write({8, 4}, start + NumbersFile::kBetweenCounts);
  EXPECT_EQ(file.Read(), (Numbers{8, 4}));
}

TEST(NumbersFile, DoesNotReadADamagedFile) {
  const testing::ScratchFolder folder;
  std::ofstream(folder / "mark") << "00000000000000000007 0000000000000";
  EXPECT_FALSE(NumbersFile(folder / "mark", 3, 1).Read());
  std::ofstream(folder / "mark") << "no number";
  EXPECT_FALSE(NumbersFile(folder / "mark", 1, 0).Read());
}

}  // namespace
}  // namespace attune
