#include "core/brain/edit.h"

#include <random>

#include "base/result.h"
#include "core/brain/audit.h"
#include "tests/support/draw_spec.h"
#include "tests/support/mentions.h"
#include "tests/unit/core/brain_harness.h"

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class Edits : public BrainTest {
 protected:
  static SweepSpec SpecWithRanges() {
    SweepSpec spec = testing::ToySpec();
    spec.space = SearchSpace({{.name = "x", .domain = IntDomain{.min = 0, .max = 1000}},
                              {.name = "lr", .domain = FloatDomain{.min = 0.1, .max = 1}},
                              {.name = "kind", .domain = CategoricalDomain{{int64_t{1}, true}}},
                              {.name = "fixed", .domain = ConstantDomain{1.5}}});
    return spec;
  }
  static std::vector<Parameter> ParametersOf(const SweepSpec& spec) {
    return spec.space.parameters();
  }
  static Error RefusedChange(const SweepSpec& to) {
    const auto changes = Changes(SpecWithRanges(), to);
    EXPECT_FALSE(changes.ok());
    return changes.ok() ? Error{} : changes.error();
  }
  EditSweep MakeEdit(SweepSpec spec) const {
    return {.sweep = id(), .spec = std::move(spec), .seen = brain.state().last_seq};
  }
};

TEST_F(Edits, DescribeChangesByKeysOfTheSweepFile) {
  SweepSpec to = SpecWithRanges();
  to.priority = 3;
  to.stop.max_trials = 200;
  to.stop.targets = {0.5};
  auto parameters = ParametersOf(to);
  std::get<FloatDomain>(parameters[1].domain).max = 2.5;
  std::get<CategoricalDomain>(parameters[2].domain).values.pop_back();
  to.space = SearchSpace(parameters);
  EXPECT_THAT(*Changes(SpecWithRanges(), to),
              ElementsAre("priority 3 (was 0)", "stop.max_trials 200 (was 4)",
                          "target of score 0.5 (was none)", "parameters.lr.max 2.5 (was 1.0)",
                          "parameters.kind.values [1] (was [1, true])"));
  EXPECT_THAT(*Changes(to, to), IsEmpty());
}

TEST_F(Edits, TheTableOfKeysSaysWhichMayChange) {
  std::mt19937_64 random(20261127);
  testing::MemberDraw draw(random);
  SweepSpec from = SpecWithRanges();
  from.objectives.clear();
  for (const std::string& name : draw.MetricNames()) from.objectives.push_back(Minimise(name));
  ForEachKey<SweepSpec>([&](const auto& row) {
    SweepSpec to = from;
    while (row.FieldIn(to) == row.FieldIn(from)) draw.Draw(row.key, row.FieldIn(to));
    const auto changes = Changes(from, to);
    ASSERT_EQ(changes.ok(), row.key.editable) << row.key.name;
    if (changes.ok()) {
      EXPECT_THAT(*changes, ElementsAre(StartsWith(row.key.name + " ")));
    } else {
      EXPECT_THAT(changes.error().message, StartsWith(row.key.name + ": "));
    }
  });
}

TEST_F(Edits, KeysThatEarlierTrialsDependOnCannotChange) {
  SweepSpec to = SpecWithRanges();
  to.seed = 5;
  EXPECT_THAT(RefusedChange(to).message, StartsWith("searcher.seed: "));
  const auto after = [](auto change) {
    SweepSpec spec = SpecWithRanges();
    change(spec);
    return spec;
  };
  EXPECT_THAT(RefusedChange(after([](auto& s) { s.program.command = {"other"}; })).message,
              HasSubstr("command: "));
  EXPECT_THAT(RefusedChange(after([](auto& s) { s.objectives = {Minimise("score")}; })).message,
              HasSubstr("metric: "));
  EXPECT_THAT(RefusedChange(after([](auto& s) {
                s.constraints = {{"cost", 1}};
              })).message,
              HasSubstr("constraints: "));
  EXPECT_THAT(RefusedChange(after([](auto& s) { s.gang.workers = 7; })).message,
              HasSubstr("resources.workers: "));
  EXPECT_THAT(RefusedChange(after([](auto& s) { s.searcher.name = "grid"; })).message,
              HasSubstr("searcher.name: "));
  EXPECT_THAT(RefusedChange(after([](auto& s) {
                auto parameters = s.space.parameters();
                parameters.pop_back();
                s.space = SearchSpace(parameters);
              })).message,
              HasSubstr("parameters.fixed: "));
  EXPECT_THAT(RefusedChange(after([](auto& s) {
                auto parameters = s.space.parameters();
                std::get<FloatDomain>(parameters[1].domain).scale = Scale::kLog;
                s.space = SearchSpace(parameters);
              })).message,
              HasSubstr("parameters.lr.scale: "));
}

TEST_F(Edits, TheCurrentSpecIsTheEditedOne) {
  Create(testing::ToySpec());
  SweepSpec spec = sweep().spec;
  spec.priority = 4;
  spec.max_concurrent_trials = 1;
  const auto events = Do(MakeEdit(spec));
  ASSERT_NE(Find<SweepEdited>(events), nullptr);
  EXPECT_THAT(Find<SweepEdited>(events)->changes,
              ElementsAre("max_concurrent_trials 1 (was 0)", "priority 4 (was 0)"));
  EXPECT_EQ(sweep().spec, spec);
  EXPECT_THAT(*brain.Execute(MakeEdit(spec), Tick()), IsEmpty())
      << "the sweep has this spec already";
}

TEST_F(Edits, AnEditThatMissesAnEarlierEditIsRefused) {
  Create(testing::ToySpec());
  EditSweep mine = MakeEdit(sweep().spec);
  mine.spec->priority = 1;
  EditSweep theirs = mine;
  theirs.spec->priority = 2;
  Do(mine);
  EXPECT_EQ(RefusalOf(theirs).code, ErrorCode::kConflict);
}

TEST_F(Edits, ALimitBelowTheCurrentCountIsRefusedWithItsKey) {
  Create(testing::ToySpec());
  SweepSpec spec = sweep().spec;
  spec.stop.max_trials = 1;
  EXPECT_THAT(RefusalOf(MakeEdit(spec)).message,
              testing::Mentions("stop.max_trials: ", "1", "2 trials"));
}

TEST_F(Edits, UntriedPointsOutsideTheNewSpaceAreLeftOut) {
  const std::vector<Config> points = {
      {{"x", int64_t{900}}}, {{"x", int64_t{5}}}, {{"x", int64_t{800}}}};
  const SearchSpace space({{.name = "x", .domain = IntDomain{.min = 0, .max = 10}}});
  EXPECT_EQ(PointsInside(points, 1, space), (std::vector<Config>{points[0], points[1]}));
}

TEST_F(Edits, ATargetThatWasAlreadyReachedEndsTheSweep) {
  Create(testing::ToySpec());
  Report(0, 1, 0.7);
  SweepSpec spec = sweep().spec;
  spec.stop.targets = {0.6};
  const auto events = Do(MakeEdit(spec));
  ASSERT_NE(Find<SweepStopping>(events), nullptr);
  EXPECT_THAT(Find<SweepStopping>(events)->reason, testing::Mentions("score 0.7", "step 1"));
}

TEST_F(Edits, AnEditedEndedSweepContinues) {
  SweepSpec spec = testing::ToySpec();
  spec.stop.max_trials = 2;
  Create(spec);
  Finish(0);
  Finish(1);
  ASSERT_TRUE(HasEnded(StateOf(id())));
  spec.priority = 1;
  EXPECT_THAT(RefusalOf(MakeEdit(spec)).message, testing::Mentions("2 trials"));
  spec.stop.max_trials = 3;
  const auto events = Do(MakeEdit(spec));
  EXPECT_NE(Find<SweepReopened>(events), nullptr);
  EXPECT_NE(Find<TrialCreated>(events), nullptr);
}

TEST_F(Edits, ALogWithEditsReplaysToTheSameState) {
  Create(testing::ToySpec());
  Report(0, 1, 0.5);
  SweepSpec spec = sweep().spec;
  spec.priority = 2;
  Do(MakeEdit(spec));
  Finish(0);
  Auditor auditor(algorithms);
  State replayed(algorithms);
  for (const Event& event : log) {
    EXPECT_EQ(auditor.Next(event), std::nullopt);
    Apply(replayed, event);
  }
  EXPECT_EQ(SaveState(replayed), SaveState(brain.state()));
}

}  // namespace
}  // namespace attune
