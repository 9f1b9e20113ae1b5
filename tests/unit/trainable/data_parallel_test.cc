// Properties of data-parallel training that hold across ranks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/trainable/process.h"

namespace attune::inline sdk::trainable::testing {
namespace {

using nlohmann::json;

// Returns the metrics of each step of a gang that gets no verdict.
std::vector<json> Train(int world_size, const std::string& mode, int steps, json start = {},
                        const Environment& environment = {}) {
  if (start.is_null()) start = json::object();
  start["config"] = {{"mode", mode}};
  start["max_step"] = start.contains("resume") ? steps + start["resume"]["step"].get<int>() : steps;
  FakeGang gang(world_size, start, environment);
  if (world_size > 1) gang.RelayRendezvous();
  std::vector<json> metrics;
  std::int64_t step = 0;
  for (int i = 0; i < steps; ++i) {
    const json report = gang.Await(0, "report");
    if (report.is_null()) {
      ADD_FAILURE() << gang.Output();
      return std::vector<json>(steps);
    }
    step = report["step"];
    metrics.push_back(report["metrics"]);
  }
  gang.Verdict(step, "stop");
  for (int rank = 0; rank < world_size; ++rank) EXPECT_EQ(gang.Wait(rank), 0) << gang.Output();
  return metrics;
}

TEST(DataParallel, AfterEveryStepAllRanksHoldTheSameWeightsBitForBit) {
  for (const int world_size : {2, 3}) {
    for (const json& metrics : Train(world_size, "train", 5)) EXPECT_EQ(metrics["spread"], 0);
  }
}

TEST(DataParallel, TwoWorkersMatchOneWorkerWithTheWholeBatch) {
  const auto one_worker = Train(1, "follow", 20);
  const auto two = Train(2, "follow", 20);
  for (std::size_t i = 0; i < one_worker.size(); ++i) {
    const double loss = one_worker[i]["loss"];
    EXPECT_NEAR(two[i]["loss"], loss, 1e-4 * (1 + loss)) << "step " << i + 1;
  }
  EXPECT_LT(one_worker.back()["loss"], one_worker.front()["loss"]);
}

TEST(DataParallel, WeightsAndBuffersOfRank0ReachAllRanks) {
  for (const json& metrics : Train(2, "buffers", 2)) {
    EXPECT_EQ(metrics["weights_at_start"], 0);
    EXPECT_NE(metrics["before"], 0) << "the ranks saw the same data: nothing is shown";
    EXPECT_EQ(metrics["after"], 0);
  }
}

TEST(DataParallel, WithoutSyncGradientsStayLocalAndAreReducedTogetherLater) {
  for (const json& metrics : Train(2, "no_sync", 2)) {
    EXPECT_NE(metrics["local"], 0);
    EXPECT_EQ(metrics["synchronised"], 0);
    EXPECT_LT(metrics["error"], 1e-6);
  }
}

TEST(DataParallel, ReductionBeginsWhileBackwardIsStillComputing) {
  const json metrics = Train(2, "overlap", 2).back();
  EXPECT_GT(metrics["communication"], 0);
  EXPECT_GT(metrics["overlap"], 0) << metrics;
  EXPECT_LE(metrics["overlap"], metrics["backward"]);
}

TEST(DataParallel, GradientsOfTwoForwardsAreReducedInBothOfTheirBackwards) {
  for (const json& metrics : Train(2, "two_forwards", 2)) {
    EXPECT_EQ(metrics["spread"], 0);
    EXPECT_LT(metrics["error"], 1e-6);
  }
}

TEST(DataParallel, AForwardMayReturnAStruct) {
  EXPECT_EQ(Train(2, "struct", 1).back()["spread"], 0);
}

TEST(DataParallel, AFrozenModelIsCopiedToAllWorkers) {
  const json one_worker = Train(1, "frozen", 1).back();
  const json two = Train(2, "frozen", 1).back();
  EXPECT_EQ(two["spread"], 0);
  EXPECT_EQ(two["mean"], one_worker["mean"]);
}

int FromEnvironment(const char* name, int fallback) {
  const char* given = std::getenv(name);
  return given == nullptr ? fallback : std::stoi(given);
}

// With three or more ranks, the place of a gradient in its bucket determines the order of
// summation.
class ResumedTrial : public ::testing::TestWithParam<std::pair<const char*, int>> {};

TEST_P(ResumedTrial, EndsWithTheWeightsOfAnUninterruptedTrialBitForBit) {
  const auto [mode, world_size] = GetParam();
  const int interruptions = FromEnvironment("ATTUNE_INTERRUPTIONS", 2);
  const int seed = FromEnvironment("ATTUNE_SEED", static_cast<int>(std::random_device()() >> 1));
  SCOPED_TRACE("ATTUNE_SEED=" + std::to_string(seed));
  std::string folder = ::testing::TempDir() + "resume-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const int steps = 3 * interruptions;
  std::vector<int> ends(steps - 1);
  std::iota(ends.begin(), ends.end(), 1);
  std::mt19937 random(seed);
  std::shuffle(ends.begin(), ends.end(), random);
  ends.resize(interruptions);
  std::sort(ends.begin(), ends.end());
  ends.push_back(steps);

  std::vector<json> in_parts;
  json start = {{"checkpoint_dir", folder}, {"attempt", 1}};
  for (int step = 0; const int end : ends) {
    for (json& metrics : Train(world_size, mode, end - step, start)) {
      in_parts.push_back(std::move(metrics));
    }
    const int attempt = start["attempt"];
    start["resume"] = {
        {"step", end},
        {"path", folder + "/step-" + std::to_string(end) + "-attempt-" + std::to_string(attempt)}};
    start["attempt"] = attempt + 1;
    step = end;
  }
  EXPECT_EQ(in_parts, Train(world_size, mode, steps));
  std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(DataParallel, ResumedTrial,
                         ::testing::Values(std::pair("train", 2), std::pair("train", 3),
                                           std::pair("train", 4), std::pair("train_static", 3)));

class RandomNumbers : public ::testing::TestWithParam<const char*> {};

TEST_P(RandomNumbers, DifferByRankAndStepButNotAfterAResume) {
  const Environment form{{"GANG_PROGRAM_FORM", "draws"}};
  std::string folder = ::testing::TempDir() + "draws-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::vector<json> whole = Train(2, GetParam(), 4, {{"seed", 7}}, form);
  Train(2, GetParam(), 2, {{"seed", 7}, {"checkpoint_dir", folder}, {"attempt", 1}}, form);
  const json resume = {{"step", 2}, {"path", folder + "/step-2-attempt-1"}};
  const std::vector<json> rest =
      Train(2, GetParam(), 2, {{"seed", 7}, {"attempt", 2}, {"resume", resume}}, form);

  std::set<double> draws;
  for (const json& step : whole) {
    EXPECT_EQ(step["setup_0"], step["setup_1"]);
    draws.insert({step["step_0"].get<double>(), step["step_1"].get<double>()});
  }
  EXPECT_EQ(draws.size(), 8u);
  EXPECT_FALSE(draws.contains(whole[0].value("between_0", 0.0)))
      << "a step draws what a model was built from";
  ASSERT_EQ(rest.size(), 2u);
  for (const int i : {0, 1}) {
    EXPECT_EQ(rest[i]["step_0"], whole[2 + i]["step_0"]);
    EXPECT_EQ(rest[i]["step_1"], whole[2 + i]["step_1"]);
    EXPECT_EQ(rest[i]["setup_0"], whole[0]["setup_0"]);
  }
  std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(DataParallel, RandomNumbers, ::testing::Values("function", "class"));

}  // namespace
}  // namespace attune::inline sdk::trainable::testing
