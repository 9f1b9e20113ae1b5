#include "system/secret.h"

#include <gtest/gtest.h>

namespace attune {
namespace {

TEST(Secret, OnlyTheWholeSecretIsTheSame) {
  EXPECT_TRUE(SameSecret("abc", "abc"));
  for (const char* shown : {"", "a", "ab", "abd", "xbc", "abca", "abcabc", "ABC"})
    EXPECT_FALSE(SameSecret(shown, "abc")) << shown;
}

TEST(Secret, NothingIsNoSecret) { EXPECT_FALSE(SameSecret("a", "")); }

}  // namespace
}  // namespace attune
