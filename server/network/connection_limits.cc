#include "server/network/connection_limits.h"

#include <sys/resource.h>

#include <algorithm>

namespace attune::server {
namespace {

// An executor's connection has two descriptors: gRPC's, and one with which the acceptor may close
// it.
constexpr size_t kDescriptorsPerExecutor = 2;

}  // namespace

size_t DescriptorsOf(const ConnectionLimits& limits) {
  return kOtherDescriptors + limits.http + limits.http_unauthenticated +
         kDescriptorsPerExecutor * (limits.executors + limits.executors_unauthenticated);
}

ConnectionLimits LimitsWithin(size_t descriptors) {
  ConnectionLimits limits;
  if (DescriptorsOf(limits) <= descriptors) return limits;
  const size_t left = descriptors > kOtherDescriptors ? descriptors - kOtherDescriptors : 0;
  limits.http_unauthenticated = std::clamp<size_t>(left / 8, 16, limits.http_unauthenticated);
  limits.executors_unauthenticated =
      std::clamp<size_t>(left / 16, 8, limits.executors_unauthenticated);
  limits.executors = std::clamp<size_t>(left / 8, 8, limits.executors);
  limits.http = 0;
  const size_t used = DescriptorsOf(limits);
  limits.http = std::max<size_t>(descriptors > used ? descriptors - used : 0, 16);
  return limits;
}

ConnectionLimits ReserveDescriptors() {
  const size_t wanted = DescriptorsOf({});
  rlimit allowed{};
  if (::getrlimit(RLIMIT_NOFILE, &allowed) != 0) return {};
  if (allowed.rlim_cur < wanted) {
    rlimit raised = allowed;
    raised.rlim_cur = std::min<rlim_t>(wanted, allowed.rlim_max);
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) allowed = raised;
  }
  return LimitsWithin(allowed.rlim_cur);
}

}  // namespace attune::server
