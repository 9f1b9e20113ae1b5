#include "tests/unit/sweepfile/harness.h"

namespace attune::sweepfile {
namespace {

using ::testing::HasSubstr;

SweepSpec Patched(const SweepSpec& spec, std::string_view patch) {
  Parsed parsed = PatchSweep(spec, patch, {.algorithms = &AllAlgorithms()});
  EXPECT_EQ(FaultLines(parsed), "") << patch;
  return parsed.spec ? *std::move(parsed.spec) : SweepSpec{};
}

std::string FaultsOfPatch(const SweepSpec& spec, std::string_view patch) {
  const Parsed parsed = PatchSweep(spec, patch, {.algorithms = &AllAlgorithms()});
  EXPECT_FALSE(parsed.spec.has_value()) << patch;
  return FaultLines(parsed);
}

SweepSpec Base() {
  return Spec(
      With("initial_points: [{lr: 0.9}]\nscheduler: {name: asha, max: 9}\n"
           "searcher: {name: random, seed: 3}\nenv: {A: b}\n"));
}

TEST(PatchSweep, ChangesOnlyTheGivenKeys) {
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

TEST(PatchSweep, UpdatesTheDefaultsOfAPlateau) {
  const SweepSpec before =
      Patched(Base(), "stop: {plateau: {metric: reward, mode: max, patience: 4}}");
  const std::string own = before.objective().metric;
  const SweepSpec after = Patched(before, "stop: {plateau: {metric: " + own + "}}");
  EXPECT_EQ(after.stop.plateau->metric, before.objective());
  EXPECT_EQ(after.stop.plateau->patience, 4);
  const SweepSpec deviating = Patched(after, "stop: {plateau: {std: 0.5}}");
  EXPECT_EQ(deviating.stop.plateau->std, 0.5);
  EXPECT_EQ(Patched(deviating, "stop: {plateau: {min_delta: 0.1}}").stop.plateau->std,
            std::nullopt);
}

TEST(PatchSweep, RemovesAKeyThatIsNull) {
  const SweepSpec with = Patched(Base(), "metric: {target: 0.25}");
  EXPECT_EQ(Patched(with, "metric: {target: null}"), Base());
}

TEST(PatchSweep, RefusesToRemoveTheName) {
  EXPECT_THAT(FaultsOfPatch(Base(), "name: null"), HasSubstr("1:1: name: "));
  EXPECT_EQ(Patched(Base(), "name: other").name, "other");
}

TEST(PatchSweep, KeepsOptionsThatTheNewSchedulerHas) {
  const SweepSpec asha = Patched(Base(), "scheduler: {reduction_factor: 3, brackets: 2}");
  const SweepSpec hyperband = Patched(asha, "scheduler: {name: hyperband}");
  EXPECT_EQ(hyperband.scheduler.name, "hyperband");
  EXPECT_EQ(hyperband.scheduler.options.at("reduction_factor"), Value(int64_t{3}));
  EXPECT_FALSE(hyperband.scheduler.options.contains("brackets"));
  EXPECT_EQ(hyperband.max_step, Base().max_step);
  EXPECT_THAT(FaultsOfPatch(asha, "scheduler: {name: hyperband, brackets: 2}"),
              HasSubstr("1:30: scheduler.brackets: "));
  EXPECT_THAT(FaultsOfPatch(asha, "scheduler: {name: ash}"), HasSubstr("scheduler.name: "));
}

TEST(PatchSweep, KeepsPointsOutsideOfNewRanges) {
  const SweepSpec spec = Patched(Base(), "parameters: {lr: {max: 0.5}}");
  EXPECT_EQ(std::get<FloatDomain>(spec.space.parameters()[0].domain).max, 0.5);
  EXPECT_EQ(spec.initial_points, Base().initial_points);
  EXPECT_THAT(FaultsOfPatch(Base(), "initial_points: []"), HasSubstr("1:1: initial_points: "));
}

TEST(PatchSweep, LocatesFaultsInThePatch) {
  const std::pair<const char*, const char*> cases[] = {
      {"stop:\n  max_trails: 40\n", "2:3: stop.max_trails: "},
      {"priority: 1\nparameters: {lr: {max: 0.01}}\n", "2:24: parameters.lr.max: "},
      {"name: null", "1:1: name: "},
      {"initial_points: []", "1:1: initial_points: "},
      {"[1]", "1:1: "},
      {"{", "sweep.yaml:"},
      {"", "1:1: "},
  };
  std::string table;
  for (const auto& [patch, place] : cases) {
    const std::string faults = FaultsOfPatch(Base(), patch);
    EXPECT_THAT(faults, HasSubstr(place)) << patch;
    table += std::string(patch) + "\n" + faults + "\n";
  }
  ExpectGolden("sweepfile/patch", table);
}

SweepSpec Edited(std::vector<Setting> settings) {
  Parsed parsed = ParseEdited(ResolvedYaml(Base()), settings, {.algorithms = &AllAlgorithms()});
  EXPECT_EQ(FaultLines(parsed), "");
  return parsed.spec ? *std::move(parsed.spec) : SweepSpec{};
}

Fault FirstFault(std::vector<Setting> settings) {
  const Parsed parsed =
      ParseEdited(ResolvedYaml(Base()), settings, {.algorithms = &AllAlgorithms()});
  EXPECT_FALSE(parsed.spec.has_value());
  return parsed.faults.empty() ? Fault{} : parsed.faults.front();
}

TEST(ParseEdited, SetsKeysAndKeepsTheRest) {
  SweepSpec expected = Base();
  expected.stop.max_trials = 40;
  expected.name = "wider";
  EXPECT_EQ(Edited({{{"stop", "max_trials"}, "40"}, {{"name"}, "wider"}}), expected);
  EXPECT_EQ(Edited({}), Base());
}

TEST(ParseEdited, ReplacesTheWholeValueOfAKey) {
  const SweepSpec edited =
      Edited({{{"initial_points"}, "null"}, {{"parameters", "lr"}, "{values: [0.3, 0.5]}"}});
  EXPECT_TRUE(edited.initial_points.empty());
  const Parsed expected = Parse(
      With("scheduler: {name: asha, max: 9}\nsearcher: {name: random, seed: 3}\nenv: {A: b}\n"));
  ASSERT_TRUE(expected.spec.has_value());
  EXPECT_FALSE(edited.space == expected.spec->space);
  EXPECT_EQ(edited.program, expected.spec->program);
}

TEST(ParseEdited, RemovesOptionsThatTheNewSchedulerLacks) {
  const SweepSpec edited = Edited({{{"scheduler", "name"}, "median"}});
  EXPECT_EQ(edited.scheduler.name, "median");
  EXPECT_FALSE(edited.scheduler.options.contains("reduction_factor"));
}

TEST(ParseEdited, NamesTheKeyAndSuggestsAnother) {
  const Fault unknown = FirstFault({{{"scheduler", "reduction_facter"}, "3"}});
  EXPECT_EQ(unknown.path, "scheduler.reduction_facter");
  EXPECT_EQ(unknown.suggestion, "reduction_factor");
  EXPECT_EQ(FirstFault({{{"stop", "max_trials"}, "[1"}}).path, "stop.max_trials");
  EXPECT_EQ(FirstFault({{{"parameters", "lr", "max"}, "0.5"}}).pointer, "/initial_points/0/lr");
}

}  // namespace
}  // namespace attune::sweepfile
