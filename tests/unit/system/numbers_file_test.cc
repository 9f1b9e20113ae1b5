#include "system/numbers_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/scratch_folder.h"

namespace attune {
namespace {

using Numbers = std::vector<uint64_t>;

TEST(NumbersFile, KeepsTheNewestNumbers) {
  const testing::ScratchFolder folder;
  NumbersFile file(folder / "mark", 2);
  EXPECT_FALSE(file.Read());
  file.Write({UINT64_MAX, 1});
  file.Write({3, 4});
  EXPECT_EQ(file.Read(), (Numbers{3, 4}));
  ASSERT_TRUE(file.WriteDurably({0, 0}).ok());
  EXPECT_EQ(NumbersFile(folder / "mark", 2).Read(), (Numbers{0, 0}));
}

TEST(NumbersFile, WhatIsDamagedIsNotRead) {
  const testing::ScratchFolder folder;
  std::ofstream(folder / "mark") << "00000000000000000007 0000000000000";
  EXPECT_FALSE(NumbersFile(folder / "mark", 3).Read());
  std::ofstream(folder / "mark") << "no number";
  EXPECT_FALSE(NumbersFile(folder / "mark", 1).Read());
}

}  // namespace
}  // namespace attune
