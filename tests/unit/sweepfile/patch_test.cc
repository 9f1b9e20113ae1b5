#include "tests/unit/sweepfile/harness.h"

namespace attune::sweepfile {
namespace {

using ::testing::HasSubstr;

SweepSpec Patched(const SweepSpec& spec, std::string_view patch) {
  Parsed parsed = PatchSweep(spec, patch, {.algorithms = &TheAlgorithms()});
  EXPECT_EQ(Faults(parsed), "") << patch;
  return parsed.spec ? *std::move(parsed.spec) : SweepSpec{};
}

std::string FaultsOfPatch(const SweepSpec& spec, std::string_view patch) {
  const Parsed parsed = PatchSweep(spec, patch, {.algorithms = &TheAlgorithms()});
  EXPECT_FALSE(parsed.spec.has_value()) << patch;
  return Faults(parsed);
}

SweepSpec Base() {
  return Spec(
      With("initial_points: [{lr: 0.9}]\nscheduler: {name: asha, max: 9}\n"
           "searcher: {name: random, seed: 3}\nenv: {A: b}\n"));
}

TEST(PatchSweep, ChangesWhatIsGivenAndNothingElse) {
  SweepSpec expected = Base();
  expected.stop.max_trials = 40;
  expected.stop.targets = {0.25};
  expected.priority = -2;
  expected.scheduler.options["reduction_factor"] = int64_t{3};
  EXPECT_EQ(Patched(Base(), R"({"stop": {"max_trials": 40}, "metric": {"target": 0.25},
                                "priority": -2, "scheduler": {"reduction_factor": 3}})"),
            expected);
  EXPECT_EQ(Patched(Base(), "{}"), Base());
}

TEST(PatchSweep, NullTakesAKeyAway) {
  const SweepSpec with = Patched(Base(), "metric: {target: 0.25}");
  EXPECT_EQ(Patched(with, "metric: {target: null}"), Base());
}

TEST(PatchSweep, PointsThatWereTriedMayLieOutsideOfNewRanges) {
  const SweepSpec spec = Patched(Base(), "parameters: {lr: {max: 0.5}}");
  EXPECT_EQ(std::get<FloatDomain>(spec.space.parameters()[0].domain).max, 0.5);
  EXPECT_EQ(spec.initial_points, Base().initial_points);
  EXPECT_EQ(
      FaultsOfPatch(Base(), "initial_points: []"),
      "sweep.yaml:1:1: initial_points: cannot change once the sweep has begun; enqueue trials "
      "instead\n");
}

TEST(PatchSweep, FaultsStandAtTheirPlacesInThePatch) {
  EXPECT_EQ(FaultsOfPatch(Base(), "stop:\n  max_trails: 40\n"),
            "sweep.yaml:2:3: stop.max_trails: unknown key; did you mean max_trials?\n");
  EXPECT_EQ(FaultsOfPatch(Base(), "priority: 1\nparameters: {lr: {max: 0.01}}\n"),
            "sweep.yaml:2:24: parameters.lr.max: 0.01 is below min 0.1\n");
  EXPECT_EQ(FaultsOfPatch(Base(), "parameters: {lr: null}"),
            "sweep.yaml:1:1: parameters: there is nothing to search: add a parameter\n");
  EXPECT_THAT(FaultsOfPatch(Base(), "[1]"), HasSubstr("expected a map of what changes"));
  EXPECT_THAT(FaultsOfPatch(Base(), "{"), HasSubstr("sweep.yaml:"));
  EXPECT_THAT(FaultsOfPatch(Base(), ""), HasSubstr("expected a map of what changes"));
}

}  // namespace
}  // namespace attune::sweepfile
