#include "base/message_limits.h"

#include <gtest/gtest.h>

namespace attune {
namespace {

TEST(CutEnd, KeepsTheBeginningAndAddsTheLength) {
  EXPECT_EQ(CutEnd("short", 64), "short");
  EXPECT_EQ(CutEnd(std::string(64, 'x'), 64), std::string(64, 'x'));
  const std::string cut = CutEnd(std::string(14'000'000, 'x'), 64);
  EXPECT_EQ(cut, std::string(37, 'x') + "… (14,000,000 bytes, cut)");
  EXPECT_EQ(cut.size(), 64u);
  EXPECT_EQ(CutEnd(std::string(65, 'x'), 64), std::string(45, 'x') + "… (65 bytes, cut)");
}

TEST(CutEnd, DoesNotSplitCharacters) {
  std::string text = "x";
  for (int i = 0; i < 100; ++i) text += "é";
  const std::string cut = CutEnd(text, 64);
  EXPECT_EQ(cut.substr(cut.size() - 22), "é… (201 bytes, cut)");
  EXPECT_LE(cut.size(), 64u);
}

TEST(CutBeginning, KeepsTheEnd) {
  EXPECT_EQ(CutBeginning("short", 64), "short");
  EXPECT_EQ(CutBeginning(std::string(1000, 'x') + "the last line\n", 64),
            "(1,014 bytes, cut) …" + std::string(28, 'x') + "the last line\n");
  std::string text;
  for (int i = 0; i < 100; ++i) text += "é";
  EXPECT_LE(CutBeginning(text + "x", 64).size(), 64u);
  EXPECT_EQ(CutBeginning(text + "x", 64).substr(0, 22), "(201 bytes, cut) …é");
}

TEST(MetricName, HasALimitedLengthAndNoControlCharacters) {
  EXPECT_TRUE(IsMetricName("loss"));
  EXPECT_TRUE(IsMetricName(std::string(kMetricNameBytesMax, 'x')));
  EXPECT_FALSE(IsMetricName(std::string(kMetricNameBytesMax + 1, 'x')));
  EXPECT_FALSE(IsMetricName(""));
  EXPECT_FALSE(IsMetricName("lo\nss"));
}

}  // namespace
}  // namespace attune
