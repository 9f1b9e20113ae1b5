#include "base/utf8.h"

#include <gtest/gtest.h>

namespace attune {
namespace {

TEST(ValidUtf8, KeepsTextAndReplacesTheRest) {
  EXPECT_EQ(ValidUtf8("plain, \u00e9, \u20ac, \U0001f600"), "plain, \u00e9, \u20ac, \U0001f600");
  EXPECT_EQ(ValidUtf8("a\xff"
                      "b"),
            "a\ufffd"
            "b");
  EXPECT_EQ(ValidUtf8("cut \xe2\x82"), "cut \ufffd\ufffd");
  EXPECT_EQ(ValidUtf8("\xc0\xaf"), "\ufffd\ufffd");                      // overlong
  EXPECT_EQ(ValidUtf8("\xed\xa0\x80"), "\ufffd\ufffd\ufffd");            // a surrogate
  EXPECT_EQ(ValidUtf8("\xf4\x90\x80\x80"), "\ufffd\ufffd\ufffd\ufffd");  // above U+10FFFF
}

}  // namespace
}  // namespace attune
