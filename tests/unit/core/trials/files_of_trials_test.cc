#include "core/state/snapshot.h"
#include "tests/support/mentions.h"
#include "tests/unit/core/brain_harness.h"

// What trials need on a host: their packages, their code and a record of their environment.
namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// ---- packages --------------------------------------------------------------------------------

// Each trial needs the whole of a host.
class Packages : public BrainTest {
 protected:
  static SweepSpec Spec() {
    SweepSpec spec = testing::ToySpec();
    spec.gang = {.workers = 2, .per_worker = {.cpus = 1}};
    spec.program.packages = EnvironmentSpec{.python = "requirements.txt"};
    spec.failure.max_restarts = 0;
    spec.stop.max_trials = 1;
    return spec;
  }
  void FailBuild(uint32_t number) { Fail(number, FailureKind::kEnvironment); }
  std::string HostOf(uint32_t number) const { return trial(number).live->ranks.front().executor; }
};

TEST_F(Packages, TheFirstFailedBuildIsTheHosts) {
  Create(Spec());
  FailBuild(0);
  EXPECT_FALSE(sweep().stopping_as);
  EXPECT_EQ(StateOf(0), TrialState::kPending);
  EXPECT_EQ(trial(0).failures, 0);
}

TEST_F(Packages, ASecondFailureOnTheOnlyHostFailsTheSweep) {
  Create(Spec());
  FailBuild(0);
  Wait(60);
  ASSERT_EQ(StateOf(0), TrialState::kRunning);
  FailBuild(0);
  EXPECT_EQ(DescribeEnding().state, SweepState::kFailed);
}

TEST_F(Packages, AFailureOnASecondHostFailsTheSweep) {
  Create(Spec());
  FailBuild(0);
  Join("den", {.cpus = 2});
  Wait(60);
  ASSERT_EQ(HostOf(0), "den") << "it avoids the first host";
  FailBuild(0);
  EXPECT_EQ(DescribeEnding().state, SweepState::kFailed);
}

TEST_F(Packages, AttemptsThatWaitedForOneBuildCountOnce) {
  SweepSpec spec = Spec();
  spec.gang.workers = 1;
  spec.stop.max_trials = 2;
  Create(spec);
  ASSERT_EQ(StateOf(1), TrialState::kRunning);
  FailBuild(0);
  FailBuild(1);
  EXPECT_FALSE(sweep().stopping_as);
}

TEST_F(Packages, AHostThatFailsAloneDoesNotFailTheSweep) {
  SweepSpec spec = Spec();
  spec.stop.max_trials = 2;
  Join("den", {.cpus = 2});
  Create(spec);
  ASSERT_NE(HostOf(0), HostOf(1));
  Report(0, 1, 0.9);
  for (int i = 0; i < 5; ++i) {
    if (trial(1).live && HostOf(1) != HostOf(0)) FailBuild(1);
    Wait(3600);
    Join("attic", {.cpus = 2});
  }
  EXPECT_FALSE(sweep().stopping_as);
  EXPECT_EQ(trial(1).failures, 0);
}

// ---- patches of the code ---------------------------------------------------------------------

SweepSpec SpecWithPatches() {
  SweepSpec spec = testing::ToySpec();
  std::vector<Parameter> parameters = spec.space.parameters();
  parameters.push_back({.name = "optimizer",
                        .domain = CategoricalDomain{{Value("none"), Value("a.diff")}},
                        .when = {},
                        .patches = true});
  parameters.push_back({.name = "layers",
                        .domain = CategoricalDomain{{Value("none"), Value("b.diff")}},
                        .when = {},
                        .patches = true});
  spec.space = SearchSpace(parameters);
  spec.program.code =
      CodeSpec{.digest = "base",
               .patched = {{{"a.diff"}, "a"}, {{"a.diff", "b.diff"}, "ab"}, {{"b.diff"}, "b"}}};
  return spec;
}

Config Choose(Config config, const std::string& optimizer, const std::string& layers) {
  config.Set("optimizer", Value(optimizer));
  config.Set("layers", Value(layers));
  return config;
}

TEST(Patches, EachCombinationIsListedOnce) {
  EXPECT_THAT(
      *PatchCombinations(SpecWithPatches().space, 3),
      ElementsAre(ElementsAre("a.diff"), ElementsAre("a.diff", "b.diff"), ElementsAre("b.diff")));
  EXPECT_FALSE(PatchCombinations(SpecWithPatches().space, 2).has_value());
  EXPECT_THAT(*PatchCombinations(testing::ToySpec().space, 0), IsEmpty());
}

TEST(Patches, AConfigurationChoosesItsCode) {
  const SweepSpec spec = SpecWithPatches();
  EXPECT_EQ(CodeDigestOf(spec, Choose({}, "none", "none")), "base");
  EXPECT_EQ(CodeDigestOf(spec, Choose({}, "a.diff", "none")), "a");
  EXPECT_EQ(CodeDigestOf(spec, Choose({}, "a.diff", "b.diff")), "ab");
  EXPECT_EQ(CodeDigestOf(testing::ToySpec(), Config()), "");
}

class TrialPatches : public BrainTest {
 protected:
  static EnqueueTrial WithPatch(SweepId sweep, Config config) {
    return {.sweep = sweep,
            .config = std::move(config),
            .idempotency_key = "",
            .patch = TrialPatch{.sha256 = "1", .code = "patched"}};
  }
};

TEST_F(TrialPatches, APatchedTrialRunsItsOwnCodeAlsoAfterARestart) {
  SweepSpec spec = testing::ToySpec();
  spec.program.code = CodeSpec{.digest = "base"};
  Create(spec);
  const uint32_t number = sweep().created;
  Do(WithPatch(id(), trial(0).config));
  EXPECT_EQ(CodeDigestOf(sweep().spec, trial(number)), "patched");
  EXPECT_EQ(CodeDigestOf(sweep().spec, trial(0)), "base");
  State restored(algorithms);
  ASSERT_TRUE(LoadState(SaveState(brain.state()), restored).ok());
  EXPECT_EQ(CodeDigestOf(spec, *restored.Find(Id(number))), "patched");
}

TEST_F(TrialPatches, ParametersWithPatchesMustBeGiven) {
  Create(SpecWithPatches());
  Config config = trial(0).config;
  EXPECT_EQ(RefusalOf(WithPatch(id(), {})).code, ErrorCode::kInvalid);
  Do(WithPatch(id(), Choose(config, "a.diff", "none")));
}

// ---- records ---------------------------------------------------------------------------------

class Environments : public BrainTest {};

TEST_F(Environments, ARepeatedRecordChangesNothing) {
  Create(testing::ToySpec());
  EXPECT_NE(Find<EnvironmentRecorded>(Do(RecordEnvironment{id(), "box", "{}"})), nullptr);
  EXPECT_THAT(Do(RecordEnvironment{id(), "box", "{}"}), IsEmpty());
  EXPECT_NE(Find<EnvironmentRecorded>(Do(RecordEnvironment{id(), "den", "{}"})), nullptr);
  EXPECT_NE(Find<EnvironmentRecorded>(Do(RecordEnvironment{id(), "box", "{\"a\":1}"})), nullptr);
  EXPECT_THAT(Do(RecordEnvironment{SweepId(99), "box", "{}"}), IsEmpty())
      << "there is no sweep s99";
}

}  // namespace
}  // namespace attune
