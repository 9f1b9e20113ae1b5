// Tests of sweeps with several metrics: their Pareto front and the importance for each metric.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/cli/command_line.h"
#include "tests/unit/cli/fake_server.h"

namespace attune::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

rest::Best Report(int trial, int step, double accuracy, double latency) {
  return {.trial = trial,
          .step = step,
          .value = accuracy,
          .values = {accuracy, latency},
          .config = {{"lr", 0.1}, {"width", 8 * trial}},
          .metrics = {{"accuracy", accuracy}, {"latency_ms", latency}}};
}

// Sweep s1 improves accuracy and latency_ms.
class SeveralMetrics : public ::testing::Test {
 protected:
  SeveralMetrics() : sweep_(MakeSweep("s1", "completed")) {
    server_.WriteTo(folder_.path());
    sweep_.metrics = {{{"accuracy", "max"}, std::nullopt}, {{"latency_ms", "min"}, std::nullopt}};
  }

  std::string Attune(std::vector<std::string> args) {
    args.insert(args.end(), {"--data-dir", folder_.path().string()});
    const Ran ran = RunAttune(args);
    EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.err;
    return ran.out;
  }
  std::string Get() {
    server_.Answer("/sweeps/s1", rest::ToJson(sweep_));
    return Attune({"sweep", "get", "s1"});
  }

  FakeServer server_;
  ScratchFolder folder_;
  rest::SweepDetail sweep_;
};

TEST_F(SeveralMetrics, SortTheFrontByTheFirstMetric) {
  sweep_.pareto_front = {Report(3, 9, 0.5, 6.25), Report(7, 3, 0.9, 30), Report(5, 9, 0.8, 12)};
  const std::string shown = Get();
  EXPECT_THAT(shown, HasSubstr("\nmetrics     accuracy (max), latency_ms (min)\n"));
  EXPECT_THAT(shown, HasSubstr("\n\nPareto front\n"
                               "TRIAL  STEP  accuracy  latency_ms  CONFIGURATION\n"
                               "    7     3       0.9          30  lr=0.1 width=56\n"
                               "    5     9       0.8          12  lr=0.1 width=40\n"
                               "    3     9       0.5        6.25  lr=0.1 width=24\n"));
  EXPECT_THAT(shown, Not(HasSubstr("\nbest"))) << "no report is the best";
}

TEST_F(SeveralMetrics, SortTheFrontUpwardsIfTheFirstIsMinimised) {
  sweep_.metric = {.name = "loss", .mode = "min"};
  sweep_.metrics[0] = {sweep_.metric, std::nullopt};
  sweep_.pareto_front = {Report(7, 3, 0.9, 6.25), Report(5, 9, 0.8, 12)};
  EXPECT_THAT(Get(), HasSubstr("TRIAL  STEP  loss  latency_ms  CONFIGURATION\n"
                               "    5     9   0.8          12  lr=0.1 width=40\n"
                               "    7     3   0.9        6.25  lr=0.1 width=56\n"));
}

TEST_F(SeveralMetrics, HaveNoFrontWithoutAReport) {
  sweep_.best.reset();
  EXPECT_THAT(Get(), Not(HasSubstr("front")));
}

TEST_F(SeveralMetrics, HaveAnImportanceForEach) {
  server_.Answer(
      "/sweeps/s1/importance",
      rest::ToJson(rest::Importance{
          .metric = "latency_ms", .trials = 40, .best = 4, .parameters = {{"width", 1, 1, 1}}}));
  EXPECT_THAT(Attune({"sweep", "importance", "s1", "--metric", "latency_ms"}),
              AllOf(HasSubstr("4 of 40 "), HasSubstr("latency_ms")));
  EXPECT_EQ(server_.requests().back(), "GET /sweeps/s1/importance?metric=latency_ms");
  Attune({"sweep", "importance", "s1", "--metric", "memory", "--mode", "min"});
  EXPECT_EQ(server_.requests().back(), "GET /sweeps/s1/importance?metric=memory&mode=min");
}

TEST_F(SeveralMetrics, OmitRungsIfThereAreNone) {
  sweep_.rungs.clear();
  sweep_.scheduler = "pbt";
  EXPECT_THAT(Get(), HasSubstr("\nscheduler   pbt\n"));
}

}  // namespace
}  // namespace attune::cli
