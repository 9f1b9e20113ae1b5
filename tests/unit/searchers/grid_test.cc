#include "searchers/grid.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attune::searchers {
namespace {

using ::testing::ElementsAre;

Value Text(const char* text) { return std::string(text); }

// "a=1 b=true"
std::string Line(const Config& config) {
  std::string line;
  for (const auto& [name, value] : config.entries()) {
    line += (line.empty() ? "" : " ") + name + "=" + FormatValue(value);
  }
  return line;
}

Event Created(const std::string& origin) {
  return Event{EventSeq(1), Time{0}, TrialCreated{.origin = origin}};
}

std::vector<std::string> AllConfigs(const SearchSpace& space) {
  Grid grid(space);
  std::vector<std::string> lines;
  for (;;) {
    const Suggestion next = grid.Suggest(ProposalNumber(static_cast<uint32_t>(lines.size())));
    if (!std::holds_alternative<Proposed>(next)) break;
    lines.push_back(Line(std::get<Proposed>(next).config));
    grid.Observe(Created("grid"));
  }
  return lines;
}

TEST(Grid, FollowsNestedLoopsInTheOrderOfTheFile) {
  EXPECT_THAT(
      AllConfigs(SearchSpace({{"a", IntDomain{.min = 1, .max = 2}},
                              {"b", CategoricalDomain{{false, true}}},
                              {"c", ConstantDomain{Text("x")}}})),
      ElementsAre("a=1 b=false c=x", "a=1 b=true c=x", "a=2 b=false c=x", "a=2 b=true c=x"));
}

TEST(Grid, StepsIncludeMaxIfItIsAStep) {
  EXPECT_THAT(AllConfigs(SearchSpace({{"a", FloatDomain{.min = 0.1, .max = 0.3, .step = 0.1}}})),
              ElementsAre("a=0.1", "a=0.2", "a=0.3"));
}

TEST(Grid, AnAbsentParameterMakesNoDuplicates) {
  EXPECT_THAT(
      AllConfigs(
          SearchSpace({{"optimizer", CategoricalDomain{{Text("sgd"), Text("adamw")}}},
                       {"momentum", CategoricalDomain{{0.5, 0.9}}, {{"optimizer", {Text("sgd")}}}},
                       {"nesterov",
                        CategoricalDomain{{false, true}},
                        {{.parent = "momentum", .at_least = 0.6}}},
                       {"batch", CategoricalDomain{{int64_t{8}, int64_t{16}}}}})),
      ElementsAre("optimizer=sgd momentum=0.5 batch=8", "optimizer=sgd momentum=0.5 batch=16",
                  "optimizer=sgd momentum=0.9 nesterov=false batch=8",
                  "optimizer=sgd momentum=0.9 nesterov=false batch=16",
                  "optimizer=sgd momentum=0.9 nesterov=true batch=8",
                  "optimizer=sgd momentum=0.9 nesterov=true batch=16", "optimizer=adamw batch=8",
                  "optimizer=adamw batch=16"));
}

TEST(Grid, AParentIsAnOuterLoopOfItsChild) {
  EXPECT_THAT(AllConfigs(SearchSpace(
                  {{"child", CategoricalDomain{{int64_t{1}, int64_t{2}}}, {{"parent", {true}}}},
                   {"parent", CategoricalDomain{{true, false}}}})),
              ElementsAre("child=1 parent=true", "child=2 parent=true", "parent=false"));
}

TEST(Grid, InitialPointsDoNotAdvanceIt) {
  Grid grid(SearchSpace({{"a", IntDomain{.min = 1, .max = 2}}}));
  grid.Observe(Created("initial_points"));

  EXPECT_EQ(Line(std::get<Proposed>(grid.Suggest(ProposalNumber(1))).config), "a=1");
}

TEST(Grid, RepeatsAProposalWithoutATrial) {
  const Grid grid(SearchSpace({{"a", IntDomain{.min = 1, .max = 2}}}));

  EXPECT_EQ(grid.Suggest(ProposalNumber(0)), grid.Suggest(ProposalNumber(1)));
}

TEST(Grid, StaysAtItsEnd) {
  Grid grid(SearchSpace({{"a", ConstantDomain{int64_t{1}}}}));
  grid.Observe(Created("grid"));
  EXPECT_TRUE(std::holds_alternative<Exhausted>(grid.Suggest(ProposalNumber(1))));

  grid.Observe(Created("grid"));
  EXPECT_TRUE(std::holds_alternative<Exhausted>(grid.Suggest(ProposalNumber(2))));
}

TEST(Grid, RefusesARealRangeWithoutAStep) {
  const SweepSpec spec{.space = SearchSpace({{"a", IntDomain{.min = 1, .max = 2}},
                                             {"lr", FloatDomain{.min = 0, .max = 1}}})};
  EXPECT_EQ(GridEntry().make(spec).error().code, ErrorCode::kInvalid);
  EXPECT_THAT(GridEntry().make(spec).error().message, ::testing::StartsWith("parameters.lr: "));
}

TEST(Grid, CountsConfigurationsNotCombinations) {
  EXPECT_EQ(*Grid::Count(SearchSpace({{"a", CategoricalDomain{{true, false}}},
                                      {"b", IntDomain{.min = 1, .max = 1000}, {{"a", {true}}}},
                                      {"c", IntDomain{.min = 1, .max = 1000}, {{"a", {false}}}}})),
            2000);
}

TEST(Grid, HasALimit) {
  const auto count = [](int64_t size) {
    return Grid::Count(SearchSpace(
        {{"a", IntDomain{.min = 1, .max = size / 10}}, {"b", IntDomain{.min = 1, .max = 10}}}));
  };
  EXPECT_EQ(*count(Grid::kMaxConfigurations), Grid::kMaxConfigurations);
  EXPECT_THAT(
      count(Grid::kMaxConfigurations + 10).error().message,
      ::testing::AllOf(::testing::StartsWith("parameters: "), ::testing::HasSubstr("100000")));
}

TEST(Grid, HasALowerLimitWithManyParameters) {
  const auto count = [](int parameters, int64_t values) {
    std::vector<Parameter> space{{"a", IntDomain{.min = 1, .max = values}}};
    for (int i = 1; i < parameters; ++i)
      space.push_back({"c" + std::to_string(i), ConstantDomain{true}, {}});
    return Grid::Count(SearchSpace(std::move(space)));
  };
  EXPECT_EQ(*count(49, Grid::kMaxConfigurations), Grid::kMaxConfigurations);
  EXPECT_EQ(*count(999, Grid::kMaxWork / 1000), Grid::kMaxWork / 1000);
  EXPECT_THAT(count(999, Grid::kMaxWork / 1000 + 1).error().message,
              ::testing::HasSubstr(" 5000 "));
}

TEST(Grid, NeedsNoLimitOfTrials) {
  const SweepSpec spec{.space = SearchSpace({{"a", ConstantDomain{true}}})};
  EXPECT_TRUE(GridEntry().make(spec).ok());
}

// The remaining configurations of the grid.
std::vector<std::string> Rest(Grid& grid) {
  std::vector<std::string> lines;
  for (;;) {
    const Suggestion next = grid.Suggest(ProposalNumber(0));
    if (!std::holds_alternative<Proposed>(next)) return lines;
    lines.push_back(Line(std::get<Proposed>(next).config));
    grid.Observe(Created("grid"));
  }
}

TEST(Grid, AnEditedGridSkipsEarlierProposals) {
  Grid grid(SearchSpace({{"a", IntDomain{.min = 1, .max = 3}}}));
  grid.Observe(Created("grid"));
  grid.Observe(Created("grid"));
  grid.Adapt({.space = SearchSpace({{"a", IntDomain{.min = 2, .max = 5}}})});

  ArchiveWriter saved;
  grid.Save(saved);
  const std::string bytes = saved.Take();
  Grid again(SearchSpace({{"a", IntDomain{.min = 2, .max = 5}}}));
  ArchiveReader archive(bytes);
  again.Load(archive);
  EXPECT_TRUE(archive.AtEnd());
  EXPECT_THAT(Rest(again), ElementsAre("a=3", "a=4", "a=5"));
  EXPECT_THAT(Rest(grid), ElementsAre("a=3", "a=4", "a=5"));
}

TEST(Grid, AnExhaustedGridContinuesInALargerSpace) {
  Grid grid(SearchSpace({{"a", IntDomain{.min = 1, .max = 2}}}));
  EXPECT_THAT(Rest(grid), ElementsAre("a=1", "a=2"));
  grid.Adapt({.space = SearchSpace({{"a", IntDomain{.min = 0, .max = 3}}})});
  EXPECT_THAT(Rest(grid), ElementsAre("a=0", "a=3"));
}

// Golden: other values mean that running sweeps would get other proposals.
TEST(Grid, TheBitsOfAProposalAreGolden) {
  const auto lines = AllConfigs(SearchSpace(
      {{"a", FloatDomain{.min = 0.1, .max = 0.35, .step = 0.05}},
       {"b", FloatDomain{.min = 1e-3, .max = 0.7, .scale = Scale::kLog, .step = 0.1}}}));
  ASSERT_EQ(lines.size(), 42u);
  EXPECT_EQ(lines[0], "a=0.1 b=0.001");
  EXPECT_EQ(lines[17], "a=0.2 b=0.301");
  EXPECT_EQ(lines[41], "a=0.35 b=0.601");
}

}  // namespace
}  // namespace attune::searchers
