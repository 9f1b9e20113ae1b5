// Tests of sweeps with several metrics: their front, and the importance of parameters for each
// metric.

#include "tests/unit/server/http/http_fixture.h"

namespace attune::server {
namespace {

using ::testing::HasSubstr;

// Sweep s2 optimises accuracy and latency.
class FrontTest : public HttpFixture {
 protected:
  FrontTest() {
    SweepSpec spec = SampleSpec();
    spec.objectives = {Maximise("accuracy"), Minimise("latency")};
    backend_.Add(SweepCreated{.sweep = SweepId(2), .spec = spec});
  }

  // Reports for a new trial, which then ends.
  void Report(Config config, double accuracy, double latency) {
    const TrialId trial(SweepId(2), TrialNumber(trials_++));
    backend_.Add(TrialCreated{trial, std::move(config), "random"});
    backend_.Add(AttemptAssigned{.attempt = {trial, 1}, .epoch = Epoch(20 + trials_)});
    backend_.Add(TrialReported{
        {trial, 1}, {.step = Step(1), .metrics = {{"accuracy", accuracy}, {"latency", latency}}}});
    backend_.Add(AttemptEnded{.attempt = {trial, 1}, .outcome = Outcome::kFinished});
    backend_.Add(TrialEnded{trial, TrialState::kCompleted, ""});
  }

  uint32_t trials_ = 0;
};

TEST_F(FrontTest, HasTheReportsThatAreNotDominated) {
  EXPECT_EQ(GetJson("/api/v1/sweeps/s2").at("pareto_front"), Json::array());
  Report(SampleConfig(0.1), 0.8, 12);
  Report(SampleConfig(0.2), 0.7, 15);  // dominated by the previous report
  Report(SampleConfig(0.3), 0.9, 30);
  Report(SampleConfig(0.4), std::nan(""), 1);

  const Json sweep = GetJson("/api/v1/sweeps/s2");
  EXPECT_EQ(sweep.at("metric").dump(), R"({"name":"accuracy","mode":"max"})");
  EXPECT_EQ(sweep.at("metrics").dump(), R"([{"name":"accuracy","mode":"max","target":null},)"
                                        R"({"name":"latency","mode":"min","target":null}])");
  const Json& front = sweep.at("pareto_front");
  ASSERT_EQ(front.size(), 2u);
  EXPECT_EQ(front[0].at("trial"), 0) << "in the order of their reports";
  EXPECT_EQ(front[0].at("values").dump(), "[0.8,12.0]");
  EXPECT_EQ(front[1].at("trial"), 2);
  EXPECT_EQ(front[1].at("step"), 1);
  EXPECT_EQ(front[1].at("value"), 0.9);
  EXPECT_EQ(front[1].at("values").dump(), "[0.9,30.0]");
  EXPECT_EQ(front[1].at("config").at("lr"), 0.3);
  EXPECT_EQ(front[1].at("metrics").at("latency"), 30);
  EXPECT_EQ(sweep.at("best"), front[1]) << "best in the first metric";
}

TEST_F(FrontTest, ImportanceIsToldForEachMetric) {
  // The accuracy depends on the learning rate, the latency on the width.
  for (int i = 0; i < 60; ++i) {
    Config config = SampleConfig(0.001 + 0.008 * i);
    const int width = 8 + 8 * (i * 5 % 8);
    config.Set("width", int64_t{width});
    Report(config, 0.01 * i, width + 0.01 * (i * 7 % 60));
  }
  const auto first = [&](const std::string& query) {
    const Json importance = GetJson("/api/v1/sweeps/s2/importance" + query);
    EXPECT_EQ(importance.at("trials"), 60);
    EXPECT_EQ(importance.at("reason"), "");
    const Json& parameter = importance.at("parameters").front();
    EXPECT_GT(parameter.at("importance"), 0.8) << importance;
    return importance.at("metric").get<std::string>() + ": " +
           parameter.at("name").get<std::string>();
  };
  EXPECT_EQ(first(""), "accuracy: lr");
  EXPECT_EQ(first("?metric=accuracy"), "accuracy: lr");
  EXPECT_EQ(first("?metric=latency"), "latency: width");
  EXPECT_THAT(GetJson("/api/v1/sweeps/s2/importance?metric=loss", 400).at("detail"),
              HasSubstr("mode=min"));
}

}  // namespace
}  // namespace attune::server
