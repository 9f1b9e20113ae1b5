#include "attune/distributed_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "attune/error.h"

namespace attune {
namespace {

using ::testing::ElementsAre;

std::vector<std::int64_t> AllRanks(std::int64_t size, int world_size, bool drop_last) {
  std::vector<std::int64_t> all;
  for (int rank = 0; rank < world_size; ++rank) {
    const DistributedSampler sampler(
        size, {.rank = rank, .world_size = world_size, .seed = 3, .drop_last = drop_last});
    all.insert(all.end(), sampler.indices().begin(), sampler.indices().end());
  }
  std::sort(all.begin(), all.end());
  return all;
}

TEST(DistributedSampler, RanksPartitionTheDataset) {
  std::vector<std::int64_t> everything(12);
  std::iota(everything.begin(), everything.end(), 0);
  EXPECT_EQ(AllRanks(12, 3, false), everything);
}

TEST(DistributedSampler, PadsOrDropsSoThatRanksGetEquallyMany) {
  EXPECT_EQ(AllRanks(10, 4, /*drop_last=*/false).size(), 12u);
  EXPECT_EQ(AllRanks(10, 4, /*drop_last=*/true).size(), 8u);
  EXPECT_EQ(AllRanks(1, 4, /*drop_last=*/false), (std::vector<std::int64_t>{0, 0, 0, 0}));
}

TEST(DistributedSampler, AGlobalBatchIsTheSameSetForAnyNumberOfRanks) {
  const DistributedSampler one(100, {.seed = 7});
  const DistributedSampler left(100, {.rank = 0, .world_size = 2, .seed = 7});
  const DistributedSampler right(100, {.rank = 1, .world_size = 2, .seed = 7});
  for (std::int64_t i = 0; i < 50; ++i) {
    EXPECT_EQ(one.indices()[2 * i], left.indices()[i]);
    EXPECT_EQ(one.indices()[2 * i + 1], right.indices()[i]);
  }
}

TEST(DistributedSampler, EpochsDifferAndComeBack) {
  DistributedSampler sampler(100, {.seed = 7});
  const auto first = sampler.indices();
  sampler.set_epoch(1);
  EXPECT_NE(sampler.indices(), first);
  sampler.set_epoch(0);
  EXPECT_EQ(sampler.indices(), first);
}

TEST(DistributedSampler, OrderIsTheSameOnEveryMachine) {
  const DistributedSampler sampler(8, {.seed = 1});
  EXPECT_THAT(sampler.indices(), ElementsAre(7, 1, 5, 3, 0, 4, 2, 6));
}

TEST(DistributedSampler, SeedsGiveDifferentOrders) {
  EXPECT_NE(DistributedSampler(100, {.seed = 1}).indices(),
            DistributedSampler(100, {.seed = 2}).indices());
}

TEST(DistributedSampler, WithoutShuffleKeepsTheOrder) {
  DistributedSampler sampler(5, {.rank = 1, .world_size = 2, .shuffle = false, .drop_last = true});
  EXPECT_THAT(sampler.indices(), ElementsAre(1, 3));
  sampler.set_epoch(4);
  EXPECT_THAT(sampler.indices(), ElementsAre(1, 3));
}

TEST(DistributedSampler, TakeIsAFunctionOfThePlaceAndRunsIntoTheNextEpoch) {
  DistributedSampler sampler(10, {.seed = 5});
  std::vector<std::int64_t> two_epochs = sampler.indices();
  sampler.set_epoch(1);
  two_epochs.insert(two_epochs.end(), sampler.indices().begin(), sampler.indices().end());

  const auto taken = sampler.Take(7, 6);
  EXPECT_EQ(taken, std::vector<std::int64_t>(two_epochs.begin() + 7, two_epochs.begin() + 13));
  EXPECT_EQ(sampler.Take(7, 6), taken);
}

TEST(DistributedSampler, ImpossibleSharesAreRefused) {
  EXPECT_THROW(DistributedSampler(10, {.rank = 2, .world_size = 2}), Error);
  EXPECT_THROW(DistributedSampler(-1, {}), Error);
  EXPECT_THROW(DistributedSampler(0, {}).Take(0, 1), Error);
}

}  // namespace
}  // namespace attune
