#include "server/best_keeper.h"

#include <gtest/gtest.h>

#include <optional>

namespace attune::server {
namespace {

constexpr SweepId kSweep{1};

// The best report of the sweep is from trial 3 at step 7.
std::optional<SweepId> ChangedBestAfter(uint32_t trial, int64_t step) {
  const Algorithms algorithms;
  State state(algorithms);
  state.sweeps[kSweep].front = {
      {.trial = TrialNumber(3), .attempt = 1, .step = Step(7), .values = {0.5}}};
  const Event event{EventSeq(1), Time{0},
                    TrialReported{{{kSweep, TrialNumber(trial)}, 1}, {.step = Step(step)}}};
  return SweepWithChangedBest(event, state);
}

TEST(BestKeeper, ChecksTheSweepOfALateBestReport) { EXPECT_EQ(ChangedBestAfter(3, 7), kSweep); }

TEST(BestKeeper, IgnoresReportsThatAreNotBest) {
  EXPECT_EQ(ChangedBestAfter(3, 8), std::nullopt);
  EXPECT_EQ(ChangedBestAfter(2, 7), std::nullopt);
}

}  // namespace
}  // namespace attune::server
