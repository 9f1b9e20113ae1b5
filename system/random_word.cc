#include "system/random_word.h"

#include <sys/random.h>

#include <array>

#include "base/check.h"

namespace attune {

std::string RandomWord() {
  std::array<unsigned char, 24> bytes{};
  ATTUNE_CHECK(getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  constexpr char kDigits[] = "0123456789abcdef";
  std::string word;
  for (const unsigned char byte : bytes) {
    word += kDigits[byte >> 4];
    word += kDigits[byte & 15];
  }
  return word;
}

}  // namespace attune
