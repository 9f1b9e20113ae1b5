#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace attune::internal {

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "attune: internal error: %s:%d: %s does not hold\n", file, line, condition);
  std::abort();
}

void ValueMissing(const char* error_message) {
  std::fprintf(stderr, "attune: internal error: this error was not handled: %s\n", error_message);
  std::abort();
}

}  // namespace attune::internal
