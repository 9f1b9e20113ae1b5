#include "server/network/unauthenticated_pool.h"

#include <gtest/gtest.h>

namespace attune::server {
namespace {

TEST(UnauthenticatedPoolTest, ClosesNobodyBeforeItIsFull) {
  UnauthenticatedPool pool(3);
  for (uint64_t connection = 1; connection <= 3; ++connection)
    EXPECT_EQ(pool.Add(connection), std::nullopt);
  EXPECT_EQ(pool.size(), 3u);
}

TEST(UnauthenticatedPoolTest, ClosesAConnectionOfTheOlderHalf) {
  for (int round = 0; round < 100; ++round) {
    UnauthenticatedPool pool(4);
    for (uint64_t connection = 1; connection <= 4; ++connection) pool.Add(connection);
    const auto closed = pool.Add(5);
    ASSERT_TRUE(closed);
    EXPECT_LE(*closed, 2u);
    EXPECT_EQ(pool.size(), 4u);
  }
}

TEST(UnauthenticatedPoolTest, ANewConnectionOutlivesHalfAPoolOfLaterOnes) {
  UnauthenticatedPool pool(256);
  for (uint64_t stranger = 1; stranger <= 1'000; ++stranger) pool.Add(stranger);
  pool.Add(2'000);
  for (uint64_t stranger = 3'000; stranger < 3'128; ++stranger)
    EXPECT_NE(pool.Add(stranger), 2'000u);
}

TEST(UnauthenticatedPoolTest, ARemovedConnectionIsNeverClosed) {
  UnauthenticatedPool pool(2);
  pool.Add(1);
  pool.Remove(1);
  pool.Remove(7);
  EXPECT_EQ(pool.Add(2), std::nullopt);
  EXPECT_EQ(pool.Add(3), std::nullopt);
  EXPECT_EQ(pool.Add(4), 2u);
}

TEST(UnauthenticatedPoolTest, APoolOfOneClosesTheConnectionBefore) {
  UnauthenticatedPool pool(1);
  EXPECT_EQ(pool.Add(1), std::nullopt);
  EXPECT_EQ(pool.Add(2), 1u);
}

}  // namespace
}  // namespace attune::server
