#include "core/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace attune::internal {

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "attune: internal error: %s:%d: %s does not hold\n", file, line, condition);
  std::abort();
}

}  // namespace attune::internal
