#include "core/state/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "core/base/random.h"
#include "tests/conformance/seed.h"
#include "tests/support/golden.h"

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

GangRequest Gang(int min_workers, int max_workers, Resources per_worker) {
  return {.min_workers = min_workers, .max_workers = max_workers, .per_worker = per_worker};
}

Host MakeSpanning(Host host) {
  host.spans = true;
  return host;
}

std::vector<RankSlot> PlaceOn(const GangRequest& request, const std::vector<Host>& hosts) {
  return Place(request, Hosts(hosts));
}
std::vector<RankSlot> PlaceOn(const GangSpec& gang, const std::vector<Host>& hosts) {
  return PlaceOn(RequestFor(gang), hosts);
}

// Expects that the gang fits nowhere, and returns a line with the reason.
std::string RefusalOf(const GangSpec& gang, const std::vector<Host>& hosts) {
  EXPECT_TRUE(PlaceOn(gang, hosts).empty());
  return DescribeShortage(RequestFor(gang), Hosts(hosts)) + "\n";
}

// The executor and local rank of each rank: "a:0 a:1 b:0".
std::string SlotsOf(const std::vector<RankSlot>& ranks) {
  std::string text;
  for (const RankSlot& slot : ranks)
    text += (text.empty() ? "" : " ") + slot.executor + ":" + std::to_string(slot.local_rank);
  return text;
}

TEST(Placement, AGangIsPlacedAsAWholeOrNotAtAll) {
  const std::vector<Host> hosts = {MakeHost("a", 2), MakeHost("b", 2)};
  EXPECT_TRUE(PlaceOn(Gang(3, {.cpus = 1}), hosts).empty());
  EXPECT_EQ(PlaceOn(Gang(2, {.cpus = 1}), hosts).size(), 2u);
}

TEST(Placement, ARequestThatOverflowsFitsNowhere) {
  constexpr int kMost = std::numeric_limits<int>::max();
  const Host host = MakeHost("a", 64, 8, int64_t{1} << 40);
  testing::ExpectGolden(
      "core/placement/overflows",
      RefusalOf(Gang(3, {.cpus = 1, .gpus = 1'431'655'766}), {host}) +
          RefusalOf(Gang(2, {.cpus = kMost}), {host}) +
          RefusalOf(Gang(4, {.cpus = 1, .memory_bytes = int64_t{1} << 62}), {MakeSpanning(host)}));
}

TEST(Placement, PrefersTheHostWithTheLeastLeft) {
  const auto ranks = PlaceOn(Gang(2, {.cpus = 1}), {MakeHost("big", 8), MakeHost("small", 2)});
  EXPECT_EQ(ranks[0].executor, "small");
}

TEST(Placement, BreaksTiesByName) {
  EXPECT_EQ(PlaceOn(Gang(1, {.cpus = 1}), {MakeHost("b", 2), MakeHost("a", 2)})[0].executor, "a");
}

TEST(Placement, EveryRankGetsSeparateGpus) {
  Host host = MakeHost("n1", 8, 4);
  host.gpus_free = {1, 2, 3};
  const auto ranks = PlaceOn(Gang(3, {.cpus = 1, .gpus = 1}), {host});
  EXPECT_THAT(ranks[0].gpus, ::testing::ElementsAre(1));
  EXPECT_THAT(ranks[2].gpus, ::testing::ElementsAre(3));
  EXPECT_EQ(ranks[2].local_rank, 2);
}

// A request for one worker with this share of a GPU.
GangSpec Share(int percent, PlacementPolicy placement = PlacementPolicy::kPack) {
  return {.per_worker = {.cpus = 0, .gpus = 1}, .gpu_percent = percent, .placement = placement};
}

// Places a worker on the host and returns its GPU, or -1 if the worker does not fit.
int TakeGpu(const GangSpec& gang, Host& host, std::vector<RankSlot>* taken = nullptr) {
  const std::vector<RankSlot> slots = PlaceOn(gang, {host});
  if (slots.empty()) return -1;
  EXPECT_EQ(slots[0].gpu_percent, gang.gpu_percent);
  OccupySlot(slots[0], host);
  if (taken != nullptr) taken->push_back(slots[0]);
  return slots[0].gpus[0];
}

TEST(Placement, SharesFillTheGpuWithTheLeastLeft) {
  Host host = MakeHost("a", 4, 2);
  std::vector<RankSlot> taken;
  for (const int gpu : {0, 0, 1, 1, -1}) EXPECT_EQ(TakeGpu(Share(40), host, &taken), gpu);
  EXPECT_THAT(RefusalOf(Share(40), {host}), ::testing::HasSubstr("40 %"));
  EXPECT_THAT(RefusalOf(Gang(1, {.cpus = 0, .gpus = 1}), {host}), ::testing::HasSubstr("1 GPU"));
  EXPECT_EQ(TakeGpu(Share(20), host), 0) << "a fifth of GPU 0 is free";

  ReleaseSlot(taken[2], host);
  EXPECT_EQ(TakeGpu(Share(60), host, &taken), 1);
  for (const size_t i : {3, 4}) ReleaseSlot(taken[i], host);
  EXPECT_THAT(host.gpus_free, ::testing::ElementsAre(1)) << "the whole GPU is free again";
  EXPECT_EQ(TakeGpu(Gang(1, {.cpus = 0, .gpus = 1}), host), 1);
  EXPECT_EQ(CountWorkersThatFit(RequestFor(Share(10)), Hosts({host})), 0);
}

TEST(Placement, SpreadSharesUseTheGpuWithTheMostFree) {
  Host host = MakeHost("a", 4, 2);
  for (const int gpu : {0, 1, 0, 1, 0, 1, -1})
    EXPECT_EQ(TakeGpu(Share(33, PlacementPolicy::kSpread), host), gpu);
}

TEST(Placement, AShareGoesToTheHostWithTheLeastLeft) {
  Host large = MakeHost("large", 4, 4);
  Host small = MakeHost("small", 4, 1);
  EXPECT_EQ(PlaceOn(Share(50), {large, small})[0].executor, "small");
  EXPECT_TRUE(FindNearest(RequestFor(Share(50)), Hosts({MakeHost("none", 4)})).empty());
  TakeGpu(Share(60), small);
  EXPECT_EQ(PlaceOn(Share(50), {large, small})[0].executor, "large");
}

TEST(Placement, DescribesShortages) {
  Host n3 = MakeHost("n3", 64, 8);
  n3.gpus_free.resize(6);
  Host n5 = MakeHost("n5", 64, 8);
  n5.gpus_free.resize(2);
  GangRequest resumes = Gang(1, 1, {.cpus = 1});
  resumes.rank_zero_hosts = {"b"};
  testing::ExpectGolden("core/placement/shortages",
                        RefusalOf(Gang(3, {.cpus = 1}), {MakeHost("a", 2), MakeHost("b", 2)}) +
                            RefusalOf(Gang(8, {.cpus = 1, .gpus = 1}), {n3, n5}) +
                            RefusalOf(Gang(2, {.cpus = 1, .memory_bytes = int64_t{1} << 30}),
                                      {MakeHost("a", 4, 0, int64_t{3} << 29)}) +
                            RefusalOf(Share(40), {MakeHost("a", 4)}) +
                            RefusalOf(Gang(1, {.cpus = 1}), {}) +
                            DescribeShortage(resumes, Hosts({MakeHost("a", 8)})) + "\n");
}

TEST(Placement, NamesOnlyExecutorsWithTheMostFree) {
  std::vector<Host> hosts;
  for (size_t i = 0; i < kHostsNamed + 2; ++i)
    hosts.push_back(MakeHost(std::string("n") + static_cast<char>('a' + i), 4));
  hosts[5].cpus_free = 3;
  hosts[5].total.cpus = 8;
  for (Host& host : hosts) host.cpus_free -= 1;
  const std::string text = RefusalOf(Gang(4, {.cpus = 1}), hosts);
  for (size_t i = 0; i < hosts.size(); ++i) {
    const bool is_named = text.find(hosts[i].name + " ") != std::string::npos;
    EXPECT_EQ(is_named, i != 5 && i <= kHostsNamed) << hosts[i].name;
  }
  testing::ExpectGolden("core/placement/many_executors", text);
}

TEST(Placement, PrefersOneExecutorToSeveral) {
  EXPECT_EQ(SlotsOf(PlaceOn(Gang(2, {.cpus = 1}), {MakeSpanning(MakeHost("a", 1)), MakeHost("b", 2),
                                                   MakeSpanning(MakeHost("c", 1))})),
            "b:0 b:1");
}

TEST(Placement, AGangLimitedToOneHostDoesNotSpan) {
  GangSpec gang = Gang(4, {.cpus = 1});
  gang.placement = PlacementPolicy::kOneHost;
  Host a = MakeSpanning(MakeHost("a", 4));
  Host b = MakeSpanning(MakeHost("b", 8));
  EXPECT_EQ(SlotsOf(PlaceOn(gang, {a, b})), "a:0 a:1 a:2 a:3") << "a has the least left";
  a.cpus_free = b.cpus_free = 2;
  const std::string shortage = RefusalOf(gang, {a, b});
  const std::vector<Host> hosts{a, b};
  EXPECT_EQ(FindNearest(RequestFor(gang), Hosts(hosts)), (std::vector<GangPart>{{"a", 4}}));
  gang.workers = 9;
  testing::ExpectGolden("core/placement/one_host", shortage + RefusalOf(gang, {a, b}));
}

TEST(Placement, AGangSpansOnlyExecutorsThatAllowIt) {
  const GangSpec gang = Gang(4, {.cpus = 1});
  EXPECT_EQ(SlotsOf(PlaceOn(gang, {MakeHost("a", 3), MakeSpanning(MakeHost("b", 2)),
                                   MakeSpanning(MakeHost("c", 2))})),
            "b:0 b:1 c:0 c:1");
  EXPECT_TRUE(
      PlaceOn(gang, {MakeHost("a", 3), MakeSpanning(MakeHost("b", 2)), MakeHost("c", 2)}).empty());
}

TEST(Placement, AGangSpansOnlyExecutorsWithItsLabels) {
  const auto labelled = [](Host host, const char* zone) {
    host.labels["zone"] = zone;
    return MakeSpanning(std::move(host));
  };
  const std::vector<Host> hosts = {labelled(MakeHost("a", 2), "x"), labelled(MakeHost("b", 4), "y"),
                                   labelled(MakeHost("c", 2), "x")};
  GangSpec gang = Gang(4, {.cpus = 1});
  EXPECT_EQ(SlotsOf(PlaceOn(gang, hosts)), "b:0 b:1 b:2 b:3");
  gang.required = {{"zone", {"x"}}};
  EXPECT_EQ(SlotsOf(PlaceOn(gang, hosts)), "a:0 a:1 c:0 c:1");
  GangRequest request = RequestFor(gang);
  request.rank_zero_hosts = {"b"};
  EXPECT_TRUE(PlaceOn(request, hosts).empty()) << "b has another label";
  request.rank_zero_hosts = {"c"};
  EXPECT_EQ(SlotsOf(PlaceOn(request, hosts)), "c:0 c:1 a:0 a:1");
}

TEST(Placement, APackedGangSpansFewExecutors) {
  const std::vector<Host> hosts = {MakeSpanning(MakeHost("a", 2)), MakeSpanning(MakeHost("b", 4)),
                                   MakeSpanning(MakeHost("c", 1)), MakeSpanning(MakeHost("d", 3))};
  EXPECT_EQ(SlotsOf(PlaceOn(Gang(5, {.cpus = 1}), hosts)), "b:0 b:1 b:2 b:3 c:0");
  EXPECT_EQ(SlotsOf(PlaceOn(Gang(6, {.cpus = 1}), hosts)), "b:0 b:1 b:2 b:3 a:0 a:1");
}

TEST(Placement, ASpreadGangIsDividedEvenly) {
  GangSpec gang = Gang(5, {.cpus = 1});
  gang.placement = PlacementPolicy::kSpread;
  EXPECT_EQ(SlotsOf(PlaceOn(gang, {MakeSpanning(MakeHost("a", 4)), MakeSpanning(MakeHost("b", 4)),
                                   MakeSpanning(MakeHost("c", 1))})),
            "a:0 a:1 a:2 b:0 b:1");
}

TEST(Placement, EachRankOfASpanningGangGetsGpusOfItsHost) {
  Host a = MakeSpanning(MakeHost("a", 4, 4));
  a.gpus_free = {1, 3};
  const auto ranks =
      PlaceOn(Gang(3, {.cpus = 1, .gpus = 1}), {a, MakeSpanning(MakeHost("b", 4, 1))});
  ASSERT_EQ(SlotsOf(ranks), "a:0 a:1 b:0");
  EXPECT_THAT(ranks[1].gpus, ::testing::ElementsAre(3));
  EXPECT_THAT(ranks[2].gpus, ::testing::ElementsAre(0));
}

TEST(Placement, AnElasticGangStartsWithItsMinimumOrMore) {
  EXPECT_EQ(SlotsOf(PlaceOn(Gang(2, 4, {.cpus = 1}), {MakeHost("a", 3), MakeHost("b", 1)})),
            "a:0 a:1 a:2");
  EXPECT_EQ(SlotsOf(PlaceOn(Gang(4, 4, {.cpus = 1}), {MakeHost("a", 3), MakeHost("b", 1)})), "");
}

TEST(Placement, ThePreferredExecutorIsChosenIfItHasFreeSlots) {
  GangRequest request = Gang(1, 1, {.cpus = 1});
  request.preferred = "big";
  EXPECT_EQ(SlotsOf(PlaceOn(request, {MakeHost("big", 8), MakeHost("small", 1)})), "big:0");
  EXPECT_EQ(SlotsOf(PlaceOn(request, {MakeHost("big", 0), MakeHost("small", 1)})), "small:0");
}

TEST(Placement, ARequestWithNamedExecutorsUsesNoOther) {
  GangRequest request = Gang(1, 1, {.cpus = 1});
  request.rank_zero_hosts = {"b", "d"};
  EXPECT_EQ(SlotsOf(PlaceOn(request, {MakeHost("a", 8), MakeHost("b", 0), MakeHost("d", 2)})),
            "d:0");
  EXPECT_EQ(SlotsOf(PlaceOn(request, {MakeHost("a", 8), MakeHost("b", 0)})), "");
}

TEST(Placement, RankZeroOfASpanningGangIsOnTheRequiredExecutor) {
  const std::vector<Host> hosts = {MakeSpanning(MakeHost("a", 4)), MakeSpanning(MakeHost("b", 1)),
                                   MakeSpanning(MakeHost("c", 2)), MakeHost("d", 2)};
  GangRequest request = Gang(5, 5, {.cpus = 1});
  request.rank_zero_hosts = {"c"};
  EXPECT_EQ(SlotsOf(PlaceOn(request, hosts)), "c:0 c:1 a:0 a:1 a:2");
  request.rank_zero_hosts = {"b", "c"};
  EXPECT_EQ(SlotsOf(PlaceOn(request, hosts)), "c:0 c:1 a:0 a:1 a:2")
      << "c has more free CPUs than b";
  request.placement = PlacementPolicy::kSpread;
  request.rank_zero_hosts = {"b"};
  EXPECT_EQ(SlotsOf(PlaceOn(request, hosts)), "b:0 a:0 a:1 a:2 a:3");
  request.rank_zero_hosts = {"c"};
  EXPECT_EQ(SlotsOf(PlaceOn(request, hosts)), "c:0 c:1 a:0 a:1 a:2");
  request.rank_zero_hosts = {"d"};
  EXPECT_EQ(SlotsOf(PlaceOn(request, hosts)), "") << "gangs cannot span d";
  request.rank_zero_hosts = {"c"};
  std::vector<Host> full = hosts;
  full[2].cpus_free = 0;
  EXPECT_EQ(SlotsOf(PlaceOn(request, full)), "");
}

TEST(Placement, AMaskReplacesTheResourcesOfAHost) {
  const std::vector<Host> all = {MakeHost("a", 4), MakeHost("b", 8)};
  Hosts hosts(all);
  hosts.Mask(MakeHost("a", 1));
  EXPECT_EQ(SlotsOf(Place(Gang(2, 2, {.cpus = 1}), hosts)), "b:0 b:1");
  hosts.Unmask();
  EXPECT_EQ(SlotsOf(Place(Gang(2, 2, {.cpus = 1}), hosts)), "a:0 a:1");
}

TEST(Placement, TheNearestPlacementUsesTheFewestExecutors) {
  Host a = MakeSpanning(MakeHost("a", 4));
  Host b = MakeSpanning(MakeHost("b", 4));
  Host c = MakeSpanning(MakeHost("c", 2));
  a.cpus_free = 1;
  const std::vector<Host> all = {a, b, c};
  const Hosts hosts(all);
  EXPECT_EQ(FindNearest(Gang(3, 3, {.cpus = 1}), hosts), (std::vector<GangPart>{{"b", 3}}));
  EXPECT_EQ(FindNearest(Gang(6, 6, {.cpus = 1}), hosts),
            (std::vector<GangPart>{{"b", 4}, {"c", 2}}));
  EXPECT_EQ(FindNearest(Gang(11, 11, {.cpus = 1}), hosts), std::vector<GangPart>{});
}

// Compares FindBest with a search over all hosts.
TEST(Placement, FindsTheBestOfManyHosts) {
  const uint64_t seed = conformance::BaseSeed();
  RandomStream random(seed, TrialNumber{}, "test/placement");
  for (int round = 0; round < 200; ++round) {
    std::vector<Host> all;
    for (int64_t i = random.Integer(1, 30); i > 0; --i)
      all.push_back(MakeHost("h" + std::to_string(i), static_cast<int>(random.Integer(0, 4)),
                             static_cast<int>(random.Integer(0, 3)), random.Integer(0, 3)));
    Hosts hosts(all);
    std::map<std::string, Host> by_name;
    for (const Host& host : all) by_name[host.name] = host;
    if (random.Integer(0, 1) == 1) {
      Host mask = all[static_cast<size_t>(random.Integer(0, std::ssize(all) - 1))];
      mask.cpus_free = static_cast<int>(random.Integer(0, mask.cpus_free));
      by_name[mask.name] = mask;
      hosts.Mask(mask);
    }
    const Resources need{.cpus = static_cast<int>(random.Integer(0, 4)),
                         .gpus = static_cast<int>(random.Integer(0, 2)),
                         .memory_bytes = random.Integer(0, 3)};
    for (const auto placement : {PlacementPolicy::kPack, PlacementPolicy::kSpread}) {
      const Host* best = nullptr;
      const int64_t sign = placement == PlacementPolicy::kPack ? 1 : -1;
      const auto left = [&](const Host& host) {
        return std::tuple(sign * std::ssize(host.gpus_free), sign * host.cpus_free,
                          sign * host.memory_free, host.name);
      };
      for (const auto& [name, host] : by_name) {
        if (IsWithin(need, host.FreeResources()) && (best == nullptr || left(host) < left(*best)))
          best = &host;
      }
      const Host* found = hosts.FindBest(need, placement);
      EXPECT_EQ(found == nullptr ? "" : found->name, best == nullptr ? "" : best->name)
          << "ATTUNE_SEED=" << seed << " round " << round;
    }
  }
}

}  // namespace
}  // namespace attune
