#include "tests/unit/server/http/http_fixture.h"

#include "tests/support/mentions.h"

namespace attune::server {
namespace {

using ::testing::HasSubstr;

constexpr const char* kSweeps = "/api/v1/sweeps?directory=/opt&file=later.yaml";

// A sweep that searches lr from 0.001 to 0.5.
std::string FileStartingFrom(const std::string& from, double max, const std::string& metrics) {
  return "name: later\ncommand: [/bin/true]\n" + metrics +
         "\nparameters:\n  lr: {min: 0.001, max: " + std::to_string(max) +
         ", scale: log}\nsearcher: {name: random}\nwarm_start: [" + from +
         "]\nscheduler: {name: asha, max: 9}\nstop: {max_trials: 4}\n";
}

// The sample log's sweep s1, which maximises the accuracy.
std::string AccuracyFileStartingFrom(const std::string& from, double max,
                                     const std::string& mode = "max") {
  return FileStartingFrom(from, max, "metric: {name: accuracy, mode: " + mode + "}");
}

class WarmStartApi : public HttpFixture {
 protected:
  Json RefusalOf(const std::string& file) {
    return PostJson(kSweeps, file, 422).at("errors").at(0);
  }
};

TEST_F(WarmStartApi, DescribesWhatItTookFromAnEarlierSweep) {
  const Json sweep = PostJson(kSweeps, AccuracyFileStartingFrom("s1", 0.0011), 201);
  ASSERT_EQ(sweep.at("warm_start").size(), 1u);
  EXPECT_THAT(sweep.at("warm_start")[0].get<std::string>(),
              testing::Mentions("1 of 3", "s1", "2 outside", "lr"));
  EXPECT_EQ(GetJson("/api/v1/sweeps/s2").at("warm_start"), sweep.at("warm_start"));
  EXPECT_EQ(GetJson("/api/v1/sweeps/s1").at("warm_start"), Json::array());
}

TEST_F(WarmStartApi, NamesAMissingSweepAndItsPlace) {
  const Json error = RefusalOf(AccuracyFileStartingFrom("s77", 0.5));
  EXPECT_EQ(error.at("pointer"), "/warm_start");
  EXPECT_EQ(error.at("line"), 7);
  EXPECT_THAT(error.at("message").get<std::string>(), HasSubstr("s77"));
}

TEST_F(WarmStartApi, RefusesTheOppositeGoal) {
  EXPECT_THAT(
      RefusalOf(AccuracyFileStartingFrom("s1", 0.5, "min")).at("message").get<std::string>(),
      testing::Mentions("s1", "accuracy"));
}

// Sweep s2 optimises two metrics.
class WarmStartOfSeveral : public WarmStartApi {
 protected:
  WarmStartOfSeveral() {
    SweepSpec spec = SampleSpec();
    spec.objectives = {Maximise("accuracy"), Minimise("latency")};
    backend_.Add(SweepCreated{.sweep = SweepId(2), .spec = spec});
    const TrialId trial(SweepId(2), TrialNumber(0));
    backend_.Add(TrialCreated{trial, SampleConfig(0.1), "random"});
    backend_.Add(AttemptAssigned{.attempt = {trial, 1}, .epoch = Epoch(20)});
    backend_.Add(TrialReported{{trial, 1},
                               {.step = Step(1), .metrics = {{"accuracy", 0.8}, {"latency", 12}}}});
    backend_.Add(AttemptEnded{.attempt = {trial, 1}, .outcome = Outcome::kFinished});
    backend_.Add(TrialEnded{trial, TrialState::kCompleted, ""});
  }

  static constexpr const char* kBoth =
      "metrics: [{name: accuracy, mode: max}, {name: latency, mode: min}]";
};

TEST_F(WarmStartOfSeveral, TakesResultsOfASweepWithTheSameMetrics) {
  const Json sweep = PostJson(kSweeps, FileStartingFrom("s2", 0.5, kBoth), 201);
  ASSERT_EQ(sweep.at("warm_start").size(), 1u);
  EXPECT_THAT(sweep.at("warm_start")[0].get<std::string>(), testing::Mentions("1 of 1", "s2"));
}

TEST_F(WarmStartOfSeveral, NamesTheMetricThatIsMissing) {
  const Json error = RefusalOf(FileStartingFrom("s1", 0.5, kBoth));
  EXPECT_EQ(error.at("pointer"), "/warm_start");
  EXPECT_THAT(error.at("message").get<std::string>(),
              testing::Mentions("s1", "accuracy", "latency"));
}

}  // namespace
}  // namespace attune::server
