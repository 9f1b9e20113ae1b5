// Clipping, compression, several models in one step, and mixed precision.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "tests/unit/trainable/process.h"

namespace attune::inline sdk::trainable::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const Environment kGradients{{"GANG_PROGRAM_FORM", "gradients"}};

std::vector<json> ReportsOf(int world_size, const std::string& mode, int steps = 1) {
  FakeGang gang(world_size, {{"config", {{"mode", mode}}}}, kGradients);
  if (world_size > 1) gang.RelayRendezvous();
  std::vector<json> metrics;
  for (int i = 0; i < steps; ++i) {
    const json report = gang.Await(0, "report");
    if (report.is_null()) {
      ADD_FAILURE() << gang.Output();
      return std::vector<json>(steps);
    }
    metrics.push_back(report["metrics"]);
  }
  for (int rank = 0; rank < world_size; ++rank) EXPECT_EQ(gang.Wait(rank), 0) << gang.Output();
  return metrics;
}

void ExpectClippedByTheNormOfTheGang(const std::string& mode) {
  for (const int world_size : {1, 2}) {
    const json metrics = ReportsOf(world_size, mode).back();
    // Four gradients, each the mean of 1, 2, …
    EXPECT_NEAR(metrics["norm"], 2 * (world_size + 1) / 2.0, 1e-5);
    EXPECT_NEAR(metrics["after"], 0.5, 1e-5);
    EXPECT_EQ(metrics["spread"], 0);
  }
}

TEST(Gradients, AreClippedByTheNormOfTheGang) { ExpectClippedByTheNormOfTheGang("clip"); }

TEST(Gradients, OfASharedParameterAreClippedOnce) { ExpectClippedByTheNormOfTheGang("clip_tied"); }

TEST(Gradients, AreSynchronisedIfNoSyncBeginsAfterTheForward) {
  ExpectClippedByTheNormOfTheGang("clip_late");
}

TEST(Gradients, CannotBeClippedWithoutSynchronisation) {
  FakeGang gang(2, {{"config", {{"mode", "clip_local"}}}}, kGradients);
  gang.RelayRendezvous();
  EXPECT_THAT(gang.Await(0, "error")["message"].get<std::string>(), HasSubstr("clip_grad_norm_: "));
}

TEST(Gradients, AreRoundedToSixteenBitsWhenCompressed) {
  for (const auto& [mode, bits] : {std::pair{"fp16", 11}, std::pair{"bf16", 8}}) {
    const json metrics = ReportsOf(2, mode).back();
    EXPECT_GT(metrics["error"], 0) << mode << ": nothing was compressed";
    EXPECT_LT(metrics["error"], 2 * std::pow(2, -bits)) << mode;
    // The sum, 98304, exceeds the range of fp16.
    EXPECT_EQ(metrics["large"], 49152) << mode;
    EXPECT_EQ(metrics["spread"], 0) << mode;
  }
}

TEST(Gradients, OfOneRankAreUnchanged) { EXPECT_LT(ReportsOf(1, "bf16").back()["error"], 1e-6); }

// The variants: the plain step, a step in parts with clipped gradients, and a static graph.
class SeveralModels : public ::testing::TestWithParam<const char*> {};

TEST_P(SeveralModels, InOneStepMatchOneWorkerWithTheWholeBatch) {
  const auto one_worker = ReportsOf(1, GetParam(), 5);
  const auto two = ReportsOf(2, GetParam(), 5);
  for (std::size_t step = 0; step < one_worker.size(); ++step) {
    EXPECT_EQ(two[step]["spread"], 0);
    for (const auto& [name, value] : one_worker[step].items()) {
      EXPECT_NEAR(two[step][name], value, 1e-5) << name << " at step " << step + 1;
    }
  }
  EXPECT_NE(one_worker.back()["loss"], one_worker.front()["loss"]);
}

INSTANTIATE_TEST_SUITE_P(Gradients, SeveralModels,
                         ::testing::Values("gan", "gan_parts", "gan_static"));

TEST(StaticGraph, GivesTheGradientsOfFindUnusedParameters) {
  const json metrics = ReportsOf(2, "static").back();
  EXPECT_EQ(metrics["spread"], 0);
  EXPECT_EQ(metrics["same"], 1);
  EXPECT_EQ(metrics["spare"], 0) << "a gradient that no rank has";
}

TEST(StaticGraph, ThatChangesIsAnError) { EXPECT_EQ(ReportsOf(2, "static").back()["changed"], 1); }

TEST(StaticGraph, IsNotRecordedFromALocalBackward) {
  EXPECT_EQ(ReportsOf(2, "late").back()["refused"], 1);
}

TEST(SparseGradients, OfDifferentRowsAreAveragedLikeDenseOnes) {
  for (const int world_size : {1, 2, 3}) {
    const json metrics = ReportsOf(world_size, "sparse").back();
    EXPECT_EQ(metrics["sparse"], 3) << "steps with a sparse gradient";
    EXPECT_LT(metrics["error"], 1e-6);
    EXPECT_LT(metrics["norms_differ"], 1e-5);
    EXPECT_EQ(metrics["spread"], 0);
  }
}

TEST(SparseGradients, AreNotCompressed) {
  const json metrics = ReportsOf(2, "sparse_bf16").back();
  EXPECT_LT(metrics["error"], 1e-3);
  EXPECT_EQ(metrics["spread"], 0);
}

TEST(NoSync, CanBeKeptMovedAndReplaced) {
  EXPECT_EQ(ReportsOf(2, "kept").back(),
            json({{"before", 0}, {"kept", 1}, {"replaced", 1}, {"moved", 1}, {"after", 0}}));
}

// Returns the reports of a gang that trains until step `last`.
std::vector<json> TrainUntil(int last, json config, json start, int world_size = 2) {
  start["config"] = std::move(config);
  start["max_step"] = last;
  FakeGang gang(world_size, start, kGradients);
  if (world_size > 1) gang.RelayRendezvous();
  std::vector<json> metrics;
  while (true) {
    const json report = gang.Await(0, "report");
    if (report.is_null()) {
      ADD_FAILURE() << gang.Output();
      return std::vector<json>(last);
    }
    metrics.push_back(report["metrics"]);
    if (report["waits"] == true) break;
  }
  gang.Verdict(last, "stop");
  for (int rank = 0; rank < world_size; ++rank) EXPECT_EQ(gang.Wait(rank), 0) << gang.Output();
  return metrics;
}

// Trains under Autocast with a GradScaler.
std::vector<json> TrainAmp(int last, json start) {
  return TrainUntil(last, {{"mode", "amp"}}, std::move(start));
}

class Lbfgs : public ::testing::TestWithParam<bool> {};

TEST_P(Lbfgs, MatchesOneWorkerWithAllSamplesAndResumes) {
  const json config = {{"mode", "lbfgs"}, {"line_search", GetParam()}};
  std::string folder = ::testing::TempDir() + "lbfgs-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const auto one_worker = TrainUntil(4, config, json::object(), 1);
  const auto two = TrainUntil(4, config, json::object());
  TrainUntil(2, config, {{"checkpoint_dir", folder}, {"attempt", 1}});
  const auto rest =
      TrainUntil(4, config, {{"resume", {{"step", 2}, {"path", folder + "/step-2-attempt-1"}}}});
  std::filesystem::remove_all(folder);

  ASSERT_EQ(two.size(), 4u);
  EXPECT_GT(two[0]["evaluations"], 1);
  EXPECT_LT(two[3]["loss"], two[0]["loss"]);
  for (std::size_t step = 0; step < two.size(); ++step) {
    EXPECT_EQ(two[step]["spread"], 0);
    EXPECT_NEAR(two[step]["loss"], one_worker[step]["loss"], 1e-4);
  }
  ASSERT_EQ(rest.size(), 2u);
  EXPECT_EQ(rest[0], two[2]);
  EXPECT_EQ(rest[1], two[3]);
}

INSTANTIATE_TEST_SUITE_P(LineSearch, Lbfgs, ::testing::Bool());

TEST(MixedPrecision, AnOverflowOnOneRankSkipsTheStepOnAll) {
  const auto steps = TrainAmp(5, json::object());
  ASSERT_EQ(steps.size(), 5u);
  for (std::size_t step = 0; step < steps.size(); ++step) {
    EXPECT_EQ(steps[step]["spread"], 0);
    EXPECT_EQ(steps[step]["bf16"], 1);
    EXPECT_EQ(steps[step]["float"], 1);
    EXPECT_EQ(steps[step]["stepped"], step == 2 ? 0 : 1);
    EXPECT_EQ(steps[step]["moved"], step == 2 ? 0 : 1);
  }
  // Doubled after two steps, halved after the overflow, then doubled again.
  EXPECT_EQ(steps[1]["scale"], 131072);
  EXPECT_EQ(steps[2]["scale"], 65536);
  EXPECT_EQ(steps[4]["scale"], 131072);
}

TEST(MixedPrecision, AResumedTrialHasTheSameScaleAndWeightsBitForBit) {
  std::string folder = ::testing::TempDir() + "amp-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const auto whole = TrainAmp(6, json::object());
  TrainAmp(4, {{"checkpoint_dir", folder}, {"attempt", 1}});
  const auto rest =
      TrainAmp(6, {{"resume", {{"step", 4}, {"path", folder + "/step-4-attempt-1"}}}});
  ASSERT_EQ(whole.size(), 6u);
  ASSERT_EQ(rest.size(), 2u);
  EXPECT_EQ(rest[0], whole[4]);
  EXPECT_EQ(rest[1], whole[5]);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace attune::inline sdk::trainable::testing
