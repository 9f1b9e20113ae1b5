#include "core/log/sweep_keys.h"
#include "tests/unit/sweepfile/harness.h"

namespace attune::sweepfile {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kHead =
    "metric: {name: loss, mode: min}\nparameters: {lr: {min: 0.1, max: 1.0}}\n";

TEST(TrialStoppers, UsesTheSweepsMetricForAPlateauByDefault) {
  EXPECT_EQ(Spec(kHead + "stop: {patience: 5, plateau: {patience: 4}}").stop.plateau,
            (Plateau{.metric = Minimise("loss"), .patience = 4}));
  EXPECT_EQ(Spec(kHead + "stop: {patience: 5, plateau: {metric: recall, mode: max, patience: 4, "
                         "min_delta: 0.01, grace_period: 3}}")
                .stop.plateau,
            (Plateau{.metric = Maximise("recall"),
                     .patience = 4,
                     .min_delta = 0.01,
                     .grace_period = Step(3)}));
  EXPECT_EQ(Spec(kHead + "stop: {patience: 5, plateau: {metric: norm, patience: 4, std: 0.5}}")
                .stop.plateau->std,
            0.5)
      << "a deviation has no direction";
}

TEST(TrialStoppers, ReadsThresholdsInOrder) {
  const SweepSpec spec = Spec(
      kHead +
      "stop: {patience: 5, threshold: {recall: {at_least: 0.9}, loss: {at_most: 0.1, at_least: 50, "
      "grace_period: 2}}}");
  EXPECT_THAT(
      spec.stop.thresholds,
      ElementsAre(
          Threshold{.metric = "recall", .at_least = 0.9},
          Threshold{.metric = "loss", .at_least = 50, .at_most = 0.1, .grace_period = Step(2)}));
  EXPECT_THAT(spec.ReportedMetrics(), ElementsAre("loss", "recall"));
  EXPECT_EQ(Spec(ResolvedYaml(spec)), spec);
}

TEST(TrialStoppers, LocatesFaultsAtTheirKeys) {
  ExpectGolden(
      "sweepfile/stop",
      ExpectFaults(
          {{"plateau: {}", "stop.plateau.patience: "},
           {"plateau: {patience: 0}", "stop.plateau.patience: "},
           {"plateau: {patience: 1, std: 0.1}", "stop.plateau.patience: "},
           {"plateau: {patience: 2, min_delta: 0.1, std: 0.1}", "stop.plateau.min_delta: "},
           {"plateau: {patience: 2, metric: norm}", "stop.plateau.metric: "},
           {"plateau: 5", "stop.plateau: "},
           {"threshold: {loss: {}}", "stop.threshold.loss: "},
           {"threshold: {loss: {at_least: 1, at_most: 2}}", "stop.threshold.loss.at_least: "},
           {"threshold: {loss: 3}", "stop.threshold.loss: "},
           {"threshold: 3", "stop.threshold: "},
           {"threshold: {loss: {atleast: 1}}", "stop.threshold.loss.atleast: "}},
          [](const std::string& key) { return kHead + "stop: {patience: 5, " + key + "}"; }));
}

TEST(TrialStoppers, LimitsThresholds) {
  const auto text = [](size_t count) {
    std::string file = kHead + "stop:\n  patience: 5\n  threshold:\n";
    for (size_t i = 0; i < count; ++i) file += "    m" + std::to_string(i) + ": {at_least: 1}\n";
    return file;
  };
  EXPECT_EQ(Spec(text(kMaxThresholds)).stop.thresholds.size(), kMaxThresholds);
  EXPECT_THAT(FaultsOf(text(kMaxThresholds + 1)),
              AllOf(HasSubstr("stop.threshold: "), HasSubstr(" 32 ")));
}

TEST(TrialStoppers, RequiresAGroupForTheirMetricsInAPattern) {
  EXPECT_THAT(FaultsOf("command: [/bin/true]\n" + kHead +
                       "reports: {pattern: '(?P<loss>.*)'}\n"
                       "stop: {max_trials: 5, threshold: {recall: {at_least: 1}}}"),
              AllOf(HasSubstr("reports.pattern: "), HasSubstr("(?P<recall>…)")));
}

}  // namespace
}  // namespace attune::sweepfile
