#include "core/analysis/failure_pattern.h"

#include <gtest/gtest.h>

namespace attune {
namespace {

TEST(FailurePattern, ReplacesNumbers) {
  EXPECT_EQ(PatternOf("rank 12: loss is -1.5e-3 at step 4000"), "rank N: loss is N at step N");
  EXPECT_EQ(PatternOf("cannot reach 10.0.0.7:29500"), "cannot reach N:N");
  EXPECT_EQ(PatternOf("node-7 was lost"), "node-N was lost");
}

TEST(FailurePattern, ReplacesAddressesAndDigests) {
  EXPECT_EQ(PatternOf("at 0x7f3a00 in sha256:9f2c4a11bd"), "at N in sha256:N");
}

TEST(FailurePattern, KeepsWordsWithDigits) {
  EXPECT_EQ(PatternOf("expected float32, got float16"), "expected float32, got float16");
  EXPECT_EQ(PatternOf("deadlock in the facade"), "deadlock in the facade");
}

TEST(FailurePattern, KeepsExitCodesAndSignals) {
  EXPECT_EQ(PatternOf("rank 1 left with exit code 139"), "rank N left with exit code 139");
  EXPECT_EQ(PatternOf("rank 1 was killed by signal 9"), "rank N was killed by signal 9");
}

TEST(FailurePattern, KeepsTheLastPartOfAPath) {
  EXPECT_EQ(PatternOf("cannot open '/data/s1/trials/8/x-3.csv': No such file"),
            "cannot open '…/x-N.csv': No such file");
  EXPECT_EQ(PatternOf("./train.py:17: error"), "…/train.py:N: error");
  EXPECT_EQ(PatternOf("3 / 4 and and/or"), "N / N and and/or");
}

TEST(FailurePattern, JoinsSpaces) { EXPECT_EQ(PatternOf("  a \t b  "), "a b"); }

}  // namespace
}  // namespace attune
