#include "executor/agent/random_word.h"

#include <random>
#include <string_view>

namespace attune::agent {

std::string RandomWord() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr int kLength = 32;
  std::random_device random;
  std::string word;
  for (int i = 0; i < kLength; ++i) word += kDigits[random() % kDigits.size()];
  return word;
}

}  // namespace attune::agent
