#include "base/result.h"

namespace attune::inline base {

std::string_view Name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return "invalid";
    case ErrorCode::kNotFound:
      return "not found";
    case ErrorCode::kConflict:
      return "conflict";
    case ErrorCode::kDenied:
      return "denied";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kStorageFull:
      return "storage full";
    case ErrorCode::kUnsynced:
      return "unsynced";
    case ErrorCode::kCorrupt:
      return "corrupt";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "unknown";
}

}  // namespace attune::inline base
