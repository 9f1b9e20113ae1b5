#include "system/system_error.h"

#include <cerrno>
#include <cstring>

#include "base/result.h"

namespace attune {
namespace {

ErrorCode CodeOf(int number) {
  switch (number) {
    case ENOSPC:
    case EDQUOT:
      return ErrorCode::kStorageFull;
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

Error SystemError(const std::string& what, int number) {
  return {CodeOf(number), what + ": " + std::strerror(number)};
}

}  // namespace attune
