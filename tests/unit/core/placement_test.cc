#include "core/brain/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attune {
namespace {

Host MakeHost(std::string name, int cpus, int gpus = 0, int64_t memory_bytes = 0) {
  Host host{.name = std::move(name),
            .total = {.cpus = cpus, .gpus = gpus, .memory_bytes = memory_bytes},
            .cpus_free = cpus,
            .memory_free = memory_bytes};
  for (int gpu = 0; gpu < gpus; ++gpu) host.gpus_free.push_back(gpu);
  return host;
}

GangSpec Gang(int workers, Resources per_worker) {
  return {.workers = workers, .per_worker = per_worker};
}

std::vector<RankSlot> Placed(const GangSpec& gang, const std::vector<Host>& hosts) {
  return std::get<std::vector<RankSlot>>(Place(gang, hosts));
}

std::string Refused(const GangSpec& gang, const std::vector<Host>& hosts) {
  return std::get<std::string>(Place(gang, hosts));
}

TEST(Placement, AGangFitsWholeOrNotAtAll) {
  EXPECT_EQ(Refused(Gang(3, {.cpus = 1}), {MakeHost("a", 2), MakeHost("b", 2)}),
            "needs 3 CPUs: a has 2 free, b has 2 free; no executor is large enough for this gang");
}

TEST(Placement, TheHostThatIsFilledBestIsChosen) {
  const auto ranks = Placed(Gang(2, {.cpus = 1}), {MakeHost("big", 8), MakeHost("small", 2)});
  EXPECT_EQ(ranks[0].executor, "small");
}

TEST(Placement, TiesGoToTheNameThatSortsFirst) {
  EXPECT_EQ(Placed(Gang(1, {.cpus = 1}), {MakeHost("b", 2), MakeHost("a", 2)})[0].executor, "a");
}

TEST(Placement, EveryRankGetsGpusOfItsOwn) {
  Host host = MakeHost("n1", 8, 4);
  host.gpus_free = {1, 2, 3};
  const auto ranks = Placed(Gang(3, {.cpus = 1, .gpus = 1}), {host});
  EXPECT_THAT(ranks[0].gpus, testing::ElementsAre(1));
  EXPECT_THAT(ranks[2].gpus, testing::ElementsAre(3));
  EXPECT_EQ(ranks[2].local_rank, 2);
}

TEST(Placement, TheShortResourceIsNamed) {
  Host n3 = MakeHost("n3", 64, 8);
  n3.gpus_free.resize(6);
  Host n5 = MakeHost("n5", 64, 8);
  n5.gpus_free.resize(2);
  EXPECT_EQ(Refused(Gang(8, {.cpus = 1, .gpus = 1}), {n3, n5}),
            "needs 8 GPUs: n3 has 6 free, n5 has 2 free");
  EXPECT_EQ(
      Refused(Gang(2, {.cpus = 1, .memory_bytes = int64_t{1} << 30}),
              {MakeHost("a", 4, 0, int64_t{3} << 29)}),
      "needs 2.0 GiB of memory: a has 1.5 GiB free; no executor is large enough for this gang");
}

TEST(Placement, WithoutExecutorsItSaysSo) {
  EXPECT_EQ(Refused(Gang(1, {.cpus = 1}), {}), "no executor is connected");
}

}  // namespace
}  // namespace attune
