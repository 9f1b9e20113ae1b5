#include "searchers/sobol.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace attune::searchers {
namespace {

Config Point(const Sobol& sobol, uint32_t proposal) {
  return std::get<Proposed>(sobol.Suggest(ProposalNumber(proposal))).config;
}

TEST(Sobol, EveryPartOfARangeGetsOnePoint) {
  const Sobol sobol(SearchSpace({{"x", FloatDomain{.min = -4, .max = 4}},
                                 {"lr", FloatDomain{.min = 1, .max = 256, .scale = Scale::kLog}}}),
                    7);
  std::set<int> cells;
  std::set<int> powers;
  for (uint32_t i = 0; i < 8; ++i) {
    const Config config = Point(sobol, i);
    cells.insert(static_cast<int>(std::get<double>(*config.Find("x")) + 4));
    powers.insert(static_cast<int>(std::log2(std::get<double>(*config.Find("lr")))));
  }
  EXPECT_EQ(cells.size(), 8u);
  EXPECT_EQ(powers.size(), 8u);
}

TEST(Sobol, ListedValuesComeEquallyOften) {
  const Sobol sobol(SearchSpace({{"c", CategoricalDomain{{true, false, int64_t{1}, 0.5}}}}), 7);
  std::map<Value, int> counts;
  for (uint32_t i = 0; i < 64; ++i) ++counts[*Point(sobol, i).Find("c")];
  ASSERT_EQ(counts.size(), 4u);
  for (const auto& [value, count] : counts) EXPECT_EQ(count, 16) << FormatValue(value);
}

TEST(Sobol, AnEditedRangeKeepsTheSequence) {
  const SweepSpec wide{.space = SearchSpace({{"x", FloatDomain{.min = 0, .max = 2}}})};
  Sobol sobol(SearchSpace({{"x", FloatDomain{.min = 0, .max = 1}}}), 7);
  const double before = std::get<double>(*Point(sobol, 5).Find("x"));
  sobol.Adapt(wide);
  EXPECT_EQ(std::get<double>(*Point(sobol, 5).Find("x")), 2 * before);
}

std::vector<Parameter> MixedParameters() {
  return {{"x", FloatDomain{.min = -5, .max = 5}},
          {"lr", FloatDomain{.min = 1e-6, .max = 1, .scale = Scale::kLog}},
          {"steps", FloatDomain{.min = 0.1, .max = 0.9, .scale = Scale::kLog, .step = 0.1}},
          {"n", IntDomain{.min = 1, .max = 100}},
          {"kind", CategoricalDomain{{std::string("a"), std::string("b"), std::string("c")}}}};
}

std::string Line(const Config& config) {
  std::string line;
  for (const auto& [name, value] : config.entries())
    line += (line.empty() ? "" : " ") + FormatValue(value);
  return line;
}

// Golden: other values mean that running sweeps would get other proposals.
TEST(Sobol, TheBitsOfAProposalAreGolden) {
  const Sobol sobol(SearchSpace(MixedParameters()), 7);
  EXPECT_EQ(Line(Point(sobol, 0)), "4.925133935175836 0.005912480374960382 0.5 70 b");
  EXPECT_EQ(Line(Point(sobol, 1000)), "3.8669183501042426 0.001312976295981521 0.6 22 b");
}

TEST(Sobol, RequiresALimitInStop) {
  const SweepSpec spec{.program = {.command = {"train"}},
                       .space = SearchSpace({{"x", FloatDomain{.min = 0, .max = 1}}})};
  EXPECT_TRUE(SobolEntry().make(spec).error().message.starts_with("stop: "));
}

}  // namespace
}  // namespace attune::searchers
