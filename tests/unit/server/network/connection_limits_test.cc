#include "server/network/connection_limits.h"

#include <gtest/gtest.h>

namespace attune::server {
namespace {

TEST(ConnectionLimitsTest, LimitsFitTheAvailableDescriptors) {
  for (const size_t descriptors : {320, 512, 1'024, 2'000, 3'000, 3'791, 3'792, 1'000'000}) {
    const ConnectionLimits limits = LimitsWithin(descriptors);
    EXPECT_LE(DescriptorsOf(limits), descriptors);
    EXPECT_GE(limits.http, 16u);
    EXPECT_GE(limits.http_unauthenticated, 16u);
    EXPECT_GE(limits.executors, 8u);
    EXPECT_GE(limits.executors_unauthenticated, 8u);
  }
}

TEST(ConnectionLimitsTest, ATypicalHardLimitIsEnoughForBothPorts) {
  const ConnectionLimits limits = LimitsWithin(1'024);
  EXPECT_GE(limits.http, 300u);
  EXPECT_GE(limits.executors, 90u);
}

TEST(ConnectionLimitsTest, AServerWorksWithTheFewestDescriptors) {
  EXPECT_EQ(DescriptorsOf(LimitsWithin(0)), 320u);
}

}  // namespace
}  // namespace attune::server
