#include "system/system_error.h"

#include <cerrno>
#include <cstring>

#include "base/result.h"

namespace attune {
namespace {

ErrorCode CodeOf(int number) {
  if (IsStorageFull(number)) return ErrorCode::kStorageFull;
  switch (number) {
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return ErrorCode::kUnavailable;
    default:
      return ErrorCode::kDenied;
  }
}

}  // namespace

bool IsStorageFull(int number) { return number == ENOSPC || number == EDQUOT; }

Error SystemError(const std::string& what, int number) {
  return {CodeOf(number), what + ": " + std::strerror(number)};
}

}  // namespace attune
