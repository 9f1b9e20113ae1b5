#include "attune/distributed_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/data/dataloader.h>
#include <torch/data/datasets/base.h>
#include <torch/serialize/archive.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <sstream>

#include "attune/error.h"

namespace attune::inline sdk {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using Samples = std::vector<std::size_t>;

Samples Everything(std::size_t size) {
  Samples all(size);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Samples Sorted(Samples samples) {
  std::sort(samples.begin(), samples.end());
  return samples;
}

// All ranks of a gang, which advance together.
class Gang {
 public:
  Gang(std::int64_t size, int world_size, bool drop_last = false) {
    for (int rank = 0; rank < world_size; ++rank) {
      ranks.emplace_back(
          size, DistributedSampler::Options{
                    .rank = rank, .world_size = world_size, .seed = 3, .drop_last = drop_last});
    }
  }

  // Returns the samples of the gang's next batch; empty at the end of the epoch.
  Samples Next(std::int64_t global_batch_size) {
    Samples batch;
    std::size_t without = 0;
    for (DistributedSampler& rank : ranks) {
      const auto share = rank.NextShare(global_batch_size);
      if (!share) {
        ++without;
        continue;
      }
      EXPECT_FALSE(share->empty());
      batch.insert(batch.end(), share->begin(), share->end());
    }
    EXPECT_TRUE(without == 0 || without == ranks.size()) << "a rank would wait for the others";
    return batch;
  }

  Samples RestOfEpoch(std::int64_t global_batch_size) {
    Samples rest;
    for (Samples batch = Next(global_batch_size); !batch.empty(); batch = Next(global_batch_size)) {
      rest.insert(rest.end(), batch.begin(), batch.end());
    }
    return rest;
  }

  std::vector<DistributedSampler> ranks;
};

TEST(DistributedSampler, VisitsEachSampleOnceForAnyNumberOfRanks) {
  for (int world_size = 1; world_size <= 5; ++world_size) {
    for (const std::size_t size : {5u, 12u, 13u, 17u}) {
      EXPECT_EQ(Sorted(Gang(static_cast<std::int64_t>(size), world_size).RestOfEpoch(5)),
                Everything(size));
    }
  }
}

TEST(DistributedSampler, FewerSamplesThanRanksJoinTheLastBatch) {
  Gang gang(10, 3);
  EXPECT_EQ(gang.Next(4).size(), 4u);
  EXPECT_EQ(gang.Next(4).size(), 6u);
  EXPECT_TRUE(gang.Next(4).empty());
}

TEST(DistributedSampler, DropLastLeavesOutAnIncompleteBatch) {
  Gang gang(10, 3, /*drop_last=*/true);
  EXPECT_EQ(gang.RestOfEpoch(4).size(), 8u);
}

// Returns a gang that resumes from the state of another one.
DistributedSampler ResumedFrom(const DistributedSampler& other) {
  DistributedSampler sampler(other.size(), {.drop_last = true});
  sampler.load_state_dict(other.state_dict());
  sampler.reset();
  return sampler;
}

TEST(DistributedSampler, DropLastResumedAtTheEndOfAnEpochBeginsTheNextForAnyBatch) {
  DistributedSampler sampler(10, {.drop_last = true});
  while (sampler.next(4)) {
  }
  for (const std::size_t batch_size : {2, 4}) {
    DistributedSampler resumed = ResumedFrom(sampler);
    EXPECT_EQ(resumed.next(batch_size).value_or(Samples()).size(), batch_size);
    EXPECT_EQ(resumed.epoch(), 1);
  }
}

TEST(DistributedSampler, DropLastResumedWithALargerBatchThanIsLeftBeginsTheNextEpoch) {
  DistributedSampler sampler(10, {.drop_last = true});
  sampler.next(4);
  for (const std::size_t batch_size : {6, 7}) {
    DistributedSampler resumed = ResumedFrom(sampler);
    EXPECT_TRUE(resumed.next(batch_size).has_value()) << "an empty epoch";
    EXPECT_EQ(resumed.epoch(), batch_size == 6 ? 0 : 1);
  }
}

TEST(DistributedSampler, ADifferentNumberOfRanksVisitsTheRemainingSamples) {
  Gang two(50, 2);
  Samples visited = two.Next(8);
  Gang three(50, 3);
  for (DistributedSampler& rank : three.ranks) rank.load_state_dict(two.ranks[0].state_dict());
  const Samples rest = three.RestOfEpoch(8);
  visited.insert(visited.end(), rest.begin(), rest.end());
  EXPECT_EQ(Sorted(visited), Everything(50));
}

TEST(DistributedSampler, FewerSamplesThanRanksAreRepeatedByTheRanksWithoutOne) {
  Gang gang(10, 3);
  for (DistributedSampler& rank : gang.ranks) rank.MoveTo(0, 8);
  const Samples last = gang.Next(4);
  EXPECT_EQ(last.size(), 3u);
  EXPECT_EQ(last[2], last[0]);
  EXPECT_TRUE(gang.Next(4).empty());
}

TEST(DistributedSampler, NextTakesTheBatchSizeOfOneRank) {
  DistributedSampler sampler(12, {.rank = 1, .world_size = 2});
  EXPECT_EQ(sampler.next(3)->size(), 3u);
  EXPECT_EQ(sampler.offset(), 6);
}

TEST(DistributedSampler, ResetBeginsTheNextEpochOnlyAtTheEndOfOne) {
  DistributedSampler sampler(4, {.shuffle = false});
  EXPECT_THAT(*sampler.next(3), ElementsAre(0, 1, 2));
  sampler.reset();
  EXPECT_THAT(*sampler.next(3), ElementsAre(3));
  EXPECT_EQ(sampler.next(3), std::nullopt);
  EXPECT_EQ(sampler.epoch(), 0);
  sampler.reset();
  EXPECT_EQ(sampler.epoch(), 1);
  EXPECT_THAT(*sampler.next(3), ElementsAre(0, 1, 2));
  sampler.reset(2);
  EXPECT_THAT(*sampler.next(3), ElementsAre(0, 1));
}

TEST(DistributedSampler, EpochsDifferAndAreRepeatable) {
  DistributedSampler sampler(100, {.seed = 7});
  const auto first = sampler.next(100);
  sampler.set_epoch(1);
  EXPECT_NE(sampler.next(100), first);
  sampler.set_epoch(0);
  EXPECT_EQ(sampler.next(100), first);
}

TEST(DistributedSampler, OrderIsTheSameOnEveryMachine) {
  DistributedSampler sampler(8, {.seed = 1});
  EXPECT_THAT(*sampler.next(8), ElementsAre(7, 1, 5, 3, 0, 4, 2, 6));
}

TEST(DistributedSampler, SeedsGiveDifferentOrders) {
  EXPECT_NE(DistributedSampler(100, {.seed = 1}).next(100),
            DistributedSampler(100, {.seed = 2}).next(100));
}

TEST(DistributedSampler, WithoutShuffleKeepsTheOrder) {
  DistributedSampler sampler(5, {.rank = 1, .world_size = 2, .shuffle = false});
  EXPECT_THAT(*sampler.next(3), ElementsAre(1, 3));
  sampler.set_epoch(4);
  EXPECT_THAT(*sampler.next(3), ElementsAre(1, 3));
}

TEST(DistributedSampler, TakeDependsOnlyOnThePositionAndContinuesIntoTheNextEpoch) {
  DistributedSampler sampler(10, {.seed = 5});
  std::vector<std::int64_t> two_epochs;
  for (const std::int64_t epoch : {0, 1}) {
    sampler.set_epoch(epoch);
    const Samples order = *sampler.next(10);
    two_epochs.insert(two_epochs.end(), order.begin(), order.end());
  }
  const std::vector<std::int64_t> wanted(two_epochs.begin() + 7, two_epochs.begin() + 13);
  EXPECT_EQ(sampler.Take(7, 6), wanted);
  EXPECT_EQ(sampler.Take(7, 6), wanted);

  DistributedSampler left(10, {.rank = 0, .world_size = 2, .seed = 5});
  DistributedSampler right(10, {.rank = 1, .world_size = 2, .seed = 5});
  EXPECT_THAT(left.Take(7, 3), ElementsAre(wanted[0], wanted[2], wanted[4]));
  EXPECT_THAT(right.Take(7, 3), ElementsAre(wanted[1], wanted[3], wanted[5]));
}

TEST(DistributedSampler, TheStateSurvivesAnArchive) {
  DistributedSampler sampler(10, {.seed = 5});
  sampler.set_epoch(2);
  sampler.next(3);
  torch::serialize::OutputArchive written;
  sampler.save(written);
  std::stringstream bytes;
  written.save_to(bytes);

  torch::serialize::InputArchive read;
  read.load_from(bytes);
  DistributedSampler other(10, {.seed = 6});
  other.load(read);
  EXPECT_EQ(other.epoch(), 2);
  EXPECT_EQ(other.next(7), sampler.next(7));
}

// A dataset that returns its indices.
struct Indices : torch::data::datasets::BatchDataset<Indices, Samples> {
  Samples get_batch(torch::ArrayRef<std::size_t> indices) override { return indices.vec(); }
  std::optional<std::size_t> size() const override { return 10; }
};

TEST(DistributedSampler, ALibTorchLoaderGetsANewWholeEpochEachTime) {
  const auto loader = torch::data::make_data_loader(Indices(), DistributedSampler(10, {.seed = 5}),
                                                    torch::data::DataLoaderOptions().batch_size(4));
  Samples before;
  for (int epoch = 0; epoch < 3; ++epoch) {
    Samples visited;
    for (const Samples& batch : *loader) {
      visited.insert(visited.end(), batch.begin(), batch.end());
    }
    EXPECT_EQ(Sorted(visited), Everything(10));
    EXPECT_NE(visited, before);
    before = visited;
  }
}

TEST(DistributedSampler, DrawsSamplesInProportionToTheirWeights) {
  DistributedSampler sampler(4, {.seed = 5, .weights = {0, 1, 0, 3}});
  std::array<int, 4> draws{};
  for (int epoch = 0; epoch < 1000; ++epoch) {
    sampler.set_epoch(epoch);
    const auto drawn = sampler.next(4);
    for (const std::size_t sample : *drawn) ++draws[sample];
  }
  EXPECT_EQ(draws[0], 0);
  EXPECT_EQ(draws[2], 0);
  EXPECT_NEAR(draws[3], 3000, 110);  // four standard deviations of 4,000 draws
}

TEST(DistributedSampler, RefusesInvalidWeights) {
  const auto make = [](std::vector<double> weights, bool shuffle = true) {
    return [=] { DistributedSampler(2, {.shuffle = shuffle, .weights = weights}); };
  };
  EXPECT_THAT(make({1}), ThrowsMessage<Error>(HasSubstr("dataset of 2 ")));
  EXPECT_THAT(make({1, -1}), ThrowsMessage<Error>(HasSubstr("sample 1 is -1")));
  EXPECT_THAT(make({NAN, 1}), ThrowsMessage<Error>(HasSubstr("sample 0 is")));
  EXPECT_THAT(make({1, INFINITY}), ThrowsMessage<Error>(HasSubstr("sample 1 is inf")));
  EXPECT_THAT(make({0, 0}), ThrowsMessage<Error>(HasSubstr("weights: all are 0")));
  EXPECT_THAT(make({1, 1}, false), ThrowsMessage<Error>(HasSubstr("shuffle")));
}

TEST(DistributedSampler, RefusesInvalidShares) {
  EXPECT_THROW(DistributedSampler(10, {.rank = 2, .world_size = 2}), Error);
  EXPECT_THROW(DistributedSampler(-1, {}), Error);
  EXPECT_THROW(DistributedSampler(0, {}).Take(0, 1), Error);
  EXPECT_THROW(DistributedSampler(10, {.world_size = 3}).NextShare(2), Error);
  EXPECT_THROW(DistributedSampler(10, {}).MoveTo(0, 11), Error);
  EXPECT_THROW(DistributedSampler(10, {}).set_epoch(-1), Error);
}

TEST(DistributedSampler, RefusesTheStateOfAnotherDataset) {
  DistributedSampler sampler(10, {});
  EXPECT_THROW(sampler.load_state_dict(DistributedSampler(11, {}).state_dict()), Error);
  EXPECT_THROW(sampler.load_state_dict({}), Error);
}

}  // namespace
}  // namespace attune::inline sdk
