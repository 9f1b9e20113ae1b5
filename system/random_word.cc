#include "system/random_word.h"

#include <sys/random.h>

#include <cerrno>

#include "base/check.h"
#include "system/hex.h"

namespace attune {

std::string RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  for (size_t filled = 0; filled < count;) {
    const ssize_t came = getrandom(bytes.data() + filled, count - filled, 0);
    ATTUNE_CHECK(came >= 0 || errno == EINTR);
    if (came > 0) filled += static_cast<size_t>(came);
  }
  return bytes;
}

std::string RandomWord(size_t bytes) { return ToHex(RandomBytes(bytes)); }

}  // namespace attune
