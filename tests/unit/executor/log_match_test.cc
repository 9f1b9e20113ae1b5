#include "executor/gang/log_match.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/scratch_folder.h"

namespace attune::gang {
namespace {

class LogMatches : public ::testing::Test {
 protected:
  std::filesystem::path Log(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = folder_ / name;
    std::ofstream(path) << text;
    return path;
  }
  attune::testing::ScratchFolder folder_;
};

TEST_F(LogMatches, FindsALineThatMatchesAPattern) {
  const LogMatch match = FindLogMatch({"CUDA error|ECC"}, "exit code 1",
                                      {Log("a", "epoch 1\nCUDA error: an illegal access\nbye\n")});
  EXPECT_EQ(match.pattern, "CUDA error|ECC");
  EXPECT_EQ(match.line, "CUDA error: an illegal access");
}

TEST_F(LogMatches, IgnoresColours) {
  const LogMatch match =
      FindLogMatch({"^CUDA error: 9"}, "\x1b[31mCUDA error: \x1b[1m9\x1b[0m", {});
  EXPECT_EQ(match.line, "CUDA error: 9");
}

TEST_F(LogMatches, PrefersTheFirstPatternAnywhere) {
  const LogMatch match =
      FindLogMatch({"ECC", "NCCL"}, "NCCL error", {Log("a", "NCCL\n"), Log("b", "an ECC error")});
  EXPECT_EQ(match.pattern, "ECC");
  EXPECT_EQ(match.line, "an ECC error");
}

TEST_F(LogMatches, SearchesTheMessage) {
  EXPECT_EQ(FindLogMatch({"ECC"}, "RuntimeError: ECC\nat line 3", {}).line, "RuntimeError: ECC");
}

TEST_F(LogMatches, FindsNothingWithoutAMatch) {
  EXPECT_EQ(FindLogMatch({"ECC"}, "", {Log("a", "fine\n"), folder_ / "absent"}).pattern, "");
  EXPECT_EQ(FindLogMatch({}, "ECC", {}).pattern, "");
}

TEST_F(LogMatches, SearchesTheEndOfALongLogFromAWholeLineOn) {
  const std::string begin = "ECC at the beginning\n";
  const std::string rest(kLogSearchedBytesMax, 'x');
  EXPECT_EQ(FindLogMatch({"ECC"}, "", {Log("a", begin + rest)}).pattern, "");
  EXPECT_EQ(FindLogMatch({"^x"}, "", {Log("b", rest + "xx\nend\n")}).pattern, "")
      << "a partial line does not count";
  EXPECT_EQ(FindLogMatch({"ECC"}, "", {Log("c", rest + "\nECC\n")}).line, "ECC");
}

TEST_F(LogMatches, CutsTheLineAtItsLimit) {
  EXPECT_EQ(FindLogMatch({"ECC"}, "ECC" + std::string(1000, '!'), {}).line.size(),
            kMatchedLineBytesMax);
}

}  // namespace
}  // namespace attune::gang
