#include "server/storage/wanted.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attune::server {
namespace {

using ::testing::ElementsAre;

constexpr SweepId kSweep{1};

KeptCheckpoint Kept(int64_t step, bool unreported = false) {
  return {.attempt = 1,
          .ref = {Step(step), "/data/" + std::to_string(step), "sha256:" + std::to_string(step)},
          .executor = "box",
          .folder = "id:/data",
          .unreported = unreported};
}

std::vector<std::string> Names(const std::vector<WantedCopy>& copies) {
  std::vector<std::string> names;
  for (const WantedCopy& copy : copies) names.push_back(ToString(copy.id));
  return names;
}

class Wanted : public ::testing::Test {
 protected:
  Trial& Add(uint32_t number, TrialState state, std::vector<KeptCheckpoint> checkpoints) {
    Trial& trial = sweep_.trials[TrialNumber(number)];
    trial.id = {kSweep, TrialNumber(number)};
    trial.state = state;
    trial.checkpoints = std::move(checkpoints);
    return trial;
  }

  Sweep sweep_;
};

TEST_F(Wanted, IsTheNewestCheckpointOfEachTrialThatHasNotEnded) {
  Add(0, TrialState::kRunning, {Kept(1), Kept(2)});
  Add(1, TrialState::kPaused, {Kept(3)});
  Add(2, TrialState::kStopped, {Kept(4)});
  Add(3, TrialState::kPending, {});
  const auto copies = CopiesToContinue(sweep_);
  EXPECT_THAT(Names(copies), ElementsAre("s1/0/1-2", "s1/1/1-3"));
  EXPECT_EQ(copies[0].path, "/data/2");
  EXPECT_EQ(copies[0].digest, "sha256:2");
  EXPECT_EQ(copies[0].executor, "box");
  EXPECT_EQ(copies[0].folder, "id:/data");
}

TEST_F(Wanted, IsNoCheckpointWithoutItsReport) {
  Add(0, TrialState::kRunning, {Kept(1), Kept(2, true)});
  EXPECT_THAT(Names(CopiesToContinue(sweep_)), ElementsAre("s1/0/1-1"));
}

TEST_F(Wanted, IsTheDonorsCheckpointForAClone) {
  Trial& clone = Add(5, TrialState::kPending, {Kept(1)});
  clone.donor = CheckpointId{{kSweep, TrialNumber(2)}, 1, Step(9)};
  clone.cloned = Kept(9);
  EXPECT_THAT(Names(CopiesToContinue(sweep_)), ElementsAre("s1/2/1-9"));
}

TEST_F(Wanted, ListsEachCopyOnceWithTheBestFirst) {
  Add(0, TrialState::kRunning, {Kept(2)});
  Add(1, TrialState::kRunning, {Kept(8)});
  Add(2, TrialState::kRunning, {Kept(5)});
  const std::vector<WantedCopy> newest = CopiesToContinue(sweep_);
  const auto merged = MergeCopies({newest[0]}, newest);
  EXPECT_THAT(Names(merged), ElementsAre("s1/0/1-2", "s1/1/1-8", "s1/2/1-5"));
  EXPECT_TRUE(merged[0].best);
  EXPECT_FALSE(merged[1].best);
}

TEST_F(Wanted, LeavesOutCheckpointsWithoutAnExecutor) {
  WantedCopy reported = {.id = {{kSweep, TrialNumber(0)}, 1, Step(1)}, .digest = "sha256:1"};
  EXPECT_TRUE(MergeCopies({reported}, {}).empty());
}

}  // namespace
}  // namespace attune::server
