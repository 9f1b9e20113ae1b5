#include "system/random_word.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace attune {
namespace {

TEST(RandomWord, IsHexadecimalAndAnotherEachTime) {
  std::set<std::string> words;
  for (int i = 0; i < 100; ++i) {
    const std::string word = RandomWord();
    EXPECT_EQ(word.size(), 48u);
    EXPECT_EQ(word.find_first_not_of("0123456789abcdef"), std::string::npos);
    words.insert(word);
  }
  EXPECT_EQ(words.size(), 100u);
  EXPECT_EQ(RandomWord(4).size(), 8u);
}

TEST(RandomBytes, HaveTheSizeThatIsAskedFor) {
  for (const size_t size : {0u, 1u, 32u, 1000u}) EXPECT_EQ(RandomBytes(size).size(), size);
}

}  // namespace
}  // namespace attune
