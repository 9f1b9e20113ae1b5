#include "system/random_word.h"

#include <sys/random.h>

#include <cerrno>

#include "base/check.h"
#include "system/hex.h"

namespace attune {

std::string RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  for (size_t filled = 0; filled < count;) {
    const ssize_t count_or_error = getrandom(bytes.data() + filled, count - filled, 0);
    ATTUNE_CHECK(count_or_error >= 0 || errno == EINTR);
    if (count_or_error > 0) filled += static_cast<size_t>(count_or_error);
  }
  return bytes;
}

std::string RandomWord(size_t bytes) { return ToHex(RandomBytes(bytes)); }

}  // namespace attune
