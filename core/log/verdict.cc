#include "core/log/verdict.h"

namespace attune {

std::string_view Name(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::kContinue:
      return "continue";
    case VerdictKind::kPause:
      return "pause";
    case VerdictKind::kStop:
      return "stop";
    case VerdictKind::kExploit:
      return "exploit";
    case VerdictKind::kResize:
      return "resize";
  }
  return "unknown";
}

}  // namespace attune
