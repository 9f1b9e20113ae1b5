#include "system/secret.h"

#include <gtest/gtest.h>

namespace attune {
namespace {

TEST(Secret, MatchesOnlyTheWholeSecret) {
  EXPECT_TRUE(SecretsMatch("abc", "abc"));
  for (const char* shown : {"", "a", "ab", "abd", "xbc", "abca", "abcabc", "ABC"})
    EXPECT_FALSE(SecretsMatch(shown, "abc")) << shown;
}

TEST(Secret, NeverMatchesAnEmptySecret) { EXPECT_FALSE(SecretsMatch("a", "")); }

}  // namespace
}  // namespace attune
