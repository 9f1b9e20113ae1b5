#include "core/brain/queue.h"

#include "tests/support/mentions.h"
#include "tests/unit/core/brain_harness.h"

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Sweeps whose gangs need one GPU. No executor has a GPU at first.
class QueueTest : public BrainTest {
 protected:
  static SweepSpec OneGpu(int max_trials = 0) {
    SweepSpec spec = testing::ToySpec();
    spec.gang = {.workers = 1, .per_worker = {.cpus = 0, .gpus = 1}};
    spec.stop.max_trials = max_trials;
    return spec;
  }
  SweepId CreateFor(const std::string& owner) {
    Do(CreateSweep{.spec = OneGpu(), .owner = owner});
    return id();
  }
  void Enqueue(SweepId sweep) { Do(EnqueueTrial{.sweep = sweep, .config = {{"x", int64_t{7}}}}); }
  GangQueue All() const { return brain.Queue(0, 100); }
  // The sweep of each entry.
  std::vector<SweepId> Sweeps() const {
    std::vector<SweepId> sweeps;
    for (const QueuedGang& gang : All().gangs) sweeps.push_back(gang.sweep);
    return sweeps;
  }
};

TEST_F(QueueTest, IsEmptyIfNothingWaits) {
  Join("gpus", {.gpus = 4});
  Create(OneGpu(4));
  EXPECT_THAT(All().gangs, IsEmpty());
  EXPECT_EQ(All().total, 0);
}

TEST_F(QueueTest, ListsTrialsByNumberAndThenTheTrialsThatAreCreatedNext) {
  Create(OneGpu(5));
  Enqueue(id());
  Enqueue(id());
  const GangQueue queue = All();
  ASSERT_EQ(queue.gangs.size(), 3u);
  EXPECT_EQ(queue.total, 3);
  EXPECT_EQ(queue.gangs[0].trial, TrialNumber(0));
  EXPECT_EQ(queue.gangs[1].trial, TrialNumber(1));
  EXPECT_FALSE(queue.gangs[2].trial);
  EXPECT_EQ(queue.gangs[2].gangs, 3);
  for (const QueuedGang& gang : queue.gangs) {
    EXPECT_TRUE(gang.ready);
    EXPECT_THAT(gang.reason, testing::Mentions("GPU"));
  }
}

TEST_F(QueueTest, AHigherPriorityComesFirst) {
  Create(OneGpu());
  const SweepId low = id();
  SweepSpec urgent = OneGpu();
  urgent.priority = 1;
  const SweepId high = Create(urgent);
  EXPECT_THAT(Sweeps(), ElementsAre(high, low));
  EXPECT_EQ(All().gangs.front().priority, 1);
}

TEST_F(QueueTest, TheOwnerWithTheSmallestShareComesFirst) {
  Join("gpus", {.gpus = 2});
  const SweepId ada = CreateFor("ada");
  const SweepId bob = CreateFor("bob");
  Enqueue(ada);
  Enqueue(bob);
  EXPECT_THAT(Sweeps(), ElementsAre(bob, bob, ada, ada));
  EXPECT_DOUBLE_EQ(All().gangs.front().share, 0);
  EXPECT_DOUBLE_EQ(All().gangs.back().share, 1);
}

TEST_F(QueueTest, PredictsTheOrderInWhichFreeSlotsAreUsed) {
  Join("small", {.gpus = 1});
  Do(CreateSweep{.spec = OneGpu(1), .owner = "eve"});  // takes the only GPU
  const SweepId ada = CreateFor("ada");
  const SweepId bob = CreateFor("bob");
  const SweepId second = CreateFor("ada");
  for (const SweepId sweep : {ada, ada, bob, bob, second}) Enqueue(sweep);
  std::vector<TrialId> predicted;
  for (const QueuedGang& gang : All().gangs) {
    if (gang.trial) predicted.emplace_back(gang.sweep, *gang.trial);
  }
  ASSERT_EQ(predicted.size(), 5u);
  std::vector<TrialId> started;
  for (const Event& event : Join("gpus", {.gpus = 5})) {
    if (const auto* fact = std::get_if<AttemptAssigned>(&event.fact))
      started.push_back(fact->attempt.trial);
  }
  EXPECT_EQ(predicted, started);
  EXPECT_EQ(predicted[2].sweep, second) << "the shares of ada and bob are equal again";
}

TEST_F(QueueTest, GangsThatOtherSlotsDoNotHelpComeLast) {
  SweepSpec single = OneGpu();
  single.max_concurrent_trials = 1;
  const SweepId paused = Create(OneGpu());
  Enqueue(paused);
  Do(PauseSweep{paused});
  const SweepId limited = Create(single);
  Enqueue(limited);
  Enqueue(limited);
  const auto gangs = All().gangs;
  ASSERT_EQ(gangs.size(), 3u);
  EXPECT_EQ(gangs[0].sweep, limited);
  EXPECT_TRUE(gangs[0].ready);
  EXPECT_EQ(gangs[1].sweep, paused);
  EXPECT_FALSE(gangs[1].ready);
  EXPECT_EQ(gangs[1].reason, "its sweep is paused");
  EXPECT_EQ(gangs[2].trial, TrialNumber(1));
  EXPECT_FALSE(gangs[2].ready);
}

TEST_F(QueueTest, ATrialThatWaitsForItsRestartIsNotReady) {
  SweepSpec spec = testing::ToySpec();
  spec.stop.max_trials = 1;
  spec.failure.backoff = Seconds(60);
  Create(spec);
  Fail(0);
  const auto gangs = All().gangs;
  ASSERT_EQ(gangs.size(), 1u);
  EXPECT_FALSE(gangs[0].ready);
  EXPECT_GT(gangs[0].not_before.us, now);
}

TEST_F(QueueTest, APageContinuesTheOneBefore) {
  Create(OneGpu(5));
  for (int i = 0; i < 4; ++i) Enqueue(id());
  const GangQueue page = brain.Queue(2, 2);
  ASSERT_EQ(page.gangs.size(), 2u);
  EXPECT_EQ(page.gangs[0].trial, TrialNumber(2));
  EXPECT_EQ(page.gangs[1].trial, TrialNumber(3));
  EXPECT_EQ(page.total, 5);
  EXPECT_THAT(brain.Queue(5, 2).gangs, IsEmpty());
}

TEST_F(QueueTest, ListsAtMostItsLimit) {
  Create(OneGpu(1));
  for (size_t i = 0; i < kQueueEntriesMax + 3; ++i) Enqueue(id());
  EXPECT_EQ(brain.Queue(kQueueEntriesMax - 1, 100).gangs.size(), 1u);
  EXPECT_THAT(brain.Queue(kQueueEntriesMax, 100).gangs, IsEmpty());
  EXPECT_EQ(All().total, static_cast<int64_t>(kQueueEntriesMax) + 3);
}

}  // namespace
}  // namespace attune
