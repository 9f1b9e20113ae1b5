#include "base/lines.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace attune {
namespace {

TEST(SplitLines, LeavesOutTheEndsOfLines) {
  EXPECT_EQ(SplitLines("a\n\nb\n"), (std::vector<std::string_view>{"a", "", "b"}));
  EXPECT_TRUE(SplitLines("").empty());
}

}  // namespace
}  // namespace attune
