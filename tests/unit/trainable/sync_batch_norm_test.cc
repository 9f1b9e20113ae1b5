// SyncBatchNorm over the gang equals batch norm of the whole batch.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/trainable/process.h"

namespace attune::inline sdk::trainable::testing {
namespace {

using nlohmann::json;

// Returns the metrics of each report until the gang ends.
std::vector<json> ReportsOf(int world_size, const std::string& mode) {
  FakeGang gang(world_size, {{"config", {{"mode", mode}}}}, {{"GANG_PROGRAM_FORM", "norms"}});
  if (world_size > 1) gang.RelayRendezvous();
  EXPECT_FALSE(gang.Await(0, "done").is_null()) << gang.Output();
  for (int rank = 0; rank < world_size; ++rank) EXPECT_EQ(gang.Wait(rank), 0) << gang.Output();
  std::vector<json> metrics;
  for (const json& message : gang.received(0)) {
    if (message["type"] == "report") metrics.push_back(message["metrics"]);
  }
  return metrics;
}

class SyncBatchNorm : public ::testing::TestWithParam<int> {};

TEST_P(SyncBatchNorm, IsBatchNormOfTheWholeBatch) {
  const auto reports = ReportsOf(GetParam(), "compare");
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].size(), 10u);
  for (const auto& [name, distance] : reports[0].items()) {
    ASSERT_TRUE(distance.is_number()) << name;
    EXPECT_LT(distance.get<double>(), name.starts_with("double") ? 1e-10 : 1e-5) << name;
  }
}

TEST_P(SyncBatchNorm, AConvertedModelTrainsLikeAPlainOneOnOneWorker) {
  const auto one_worker = ReportsOf(1, "converted");
  const auto gang = ReportsOf(GetParam(), "converted");
  ASSERT_EQ(one_worker.size(), 7u);
  ASSERT_EQ(gang.size(), 7u);
  for (std::size_t i = 0; i < one_worker.size(); ++i) {
    EXPECT_NEAR(gang[i]["loss"], one_worker[i]["loss"], 1e-9) << "step " << i + 1;
  }
  EXPECT_LT(one_worker[5]["loss"], one_worker[0]["loss"]);
}

INSTANTIATE_TEST_SUITE_P(Of, SyncBatchNorm, ::testing::Values(1, 2, 3));

TEST(SyncBatchNormErrors, RefusesUnsupportedUses) {
  const auto reports = ReportsOf(2, "refusals");
  ASSERT_EQ(reports.size(), 1u);
  for (const auto& [name, refused] : reports[0].items()) EXPECT_EQ(refused, 1) << name;
}

}  // namespace
}  // namespace attune::inline sdk::trainable::testing
