#include "searchers/random.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "searchers/sobol.h"

namespace attune::searchers {
namespace {

constexpr int kTrials = 2'000;

Value Text(const char* text) { return std::string(text); }

Config DrawConfig(const Random& random, uint32_t proposal) {
  return std::get<Proposed>(random.Suggest(ProposalNumber(proposal))).config;
}

std::vector<Value> Column(const SearchSpace& space, std::string_view name, int trials = kTrials) {
  const Random random(space, 7);
  std::vector<Value> values;
  for (int trial = 0; trial < trials; ++trial) {
    const Config config = DrawConfig(random, static_cast<uint32_t>(trial));
    if (const Value* value = config.Find(name)) values.push_back(*value);
  }
  return values;
}

std::vector<double> Reals(const SearchSpace& space, std::string_view name) {
  std::vector<double> reals;
  for (const Value& value : Column(space, name)) reals.push_back(std::get<double>(value));
  return reals;
}

std::map<Value, int> CountDraws(const Domain& domain) {
  std::map<Value, int> counts;
  for (const Value& value : Column(SearchSpace({{"x", domain}}), "x")) ++counts[value];
  return counts;
}

int CountBelow(const std::vector<double>& values, double limit) {
  return static_cast<int>(
      std::count_if(values.begin(), values.end(), [&](double value) { return value < limit; }));
}

TEST(Random, ARangeIsDrawnUniformly) {
  const auto values = Reals(SearchSpace({{"x", FloatDomain{.min = 2, .max = 6}}}), "x");

  EXPECT_GE(*std::min_element(values.begin(), values.end()), 2.0);
  EXPECT_LE(*std::max_element(values.begin(), values.end()), 6.0);
  EXPECT_NEAR(CountBelow(values, 3.0), kTrials / 4, 97);  // five standard errors
}

TEST(Random, ALogScaleIsDrawnUniformlyInTheLogarithm) {
  const auto values =
      Reals(SearchSpace({{"x", FloatDomain{.min = 1e-4, .max = 1, .scale = Scale::kLog}}}), "x");

  EXPECT_GE(*std::min_element(values.begin(), values.end()), 1e-4);
  EXPECT_LE(*std::max_element(values.begin(), values.end()), 1.0);
  EXPECT_NEAR(CountBelow(values, 1e-3), kTrials / 4, 97);
}

TEST(Random, EveryStepIsEquallyLikelyMaxIncluded) {
  const auto counts = CountDraws(FloatDomain{.min = 0.1, .max = 0.5, .step = 0.1});

  ASSERT_EQ(counts.size(), 5u);
  EXPECT_TRUE(counts.contains(0.3));  // the decimal, not 0.30000000000000004
  EXPECT_TRUE(counts.contains(0.5));
  for (const auto& [value, count] : counts) {
    EXPECT_NEAR(count, kTrials / 5, 90) << FormatValue(value);
  }
}

TEST(Random, IntegersReachBothEnds) {
  const auto counts = CountDraws(IntDomain{.min = 8, .max = 32, .step = 8});

  ASSERT_EQ(counts.size(), 4u);
  for (const auto& [value, count] : counts) {
    EXPECT_NEAR(count, kTrials / 4, 97) << FormatValue(value);
  }
}

// In the logarithm of [1, 8), the share of 1 is log 2, that of 2 is log 3/2, …
TEST(Random, IntegersOnALogScaleTakeTheShareUpToTheNext) {
  const auto counts = CountDraws(IntDomain{.min = 1, .max = 7, .scale = Scale::kLog});

  EXPECT_EQ(counts.size(), 7u);
  EXPECT_NEAR(counts.at(int64_t{1}), kTrials * 0.3333, 106);
  EXPECT_NEAR(counts.at(int64_t{2}), kTrials * 0.1950, 89);
}

TEST(Random, TheWidestIntegersOnALogScaleStayInTheirRange) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max() - 1;
  const Domain widest = IntDomain{.min = 1, .max = kMax, .scale = Scale::kLog};
  const Domain highest = IntDomain{.min = kMax - 1, .max = kMax, .scale = Scale::kLog};

  EXPECT_TRUE(SearchSpace::Check({{"a", widest}, {"b", highest}}).empty());
  for (const auto& [value, count] : CountDraws(widest)) ASSERT_GE(std::get<int64_t>(value), 1);
  for (const auto& [value, count] : CountDraws(highest))
    ASSERT_GE(std::get<int64_t>(value), kMax - 1);
}

TEST(Random, ListedValuesAreEquallyLikelyAndKeepTheirType) {
  const auto counts = CountDraws(CategoricalDomain{{true, int64_t{1}, Text("1")}});

  ASSERT_EQ(counts.size(), 3u);
  for (const auto& [value, count] : counts) {
    EXPECT_NEAR(count, kTrials / 3, 106) << FormatValue(value);
  }
}

SearchSpace Conditional() {
  return SearchSpace({
      {"momentum", FloatDomain{.min = 0, .max = 0.9}, {{"optimizer", {Text("sgd")}}}},
      {"optimizer", CategoricalDomain{{Text("sgd"), Text("adamw")}}},
      {"batch", ConstantDomain{int64_t{128}}},
  });
}

TEST(Random, AParameterExistsOnlyForTheRightParentValue) {
  const Random random(Conditional(), 7);
  std::set<Value> seen;
  for (uint32_t trial = 0; trial < 50; ++trial) {
    const Config config = DrawConfig(random, trial);
    seen.insert(*config.Find("optimizer"));
    EXPECT_EQ(config.Find("momentum") != nullptr, *config.Find("optimizer") == Text("sgd"));
    EXPECT_EQ(*config.Find("batch"), Value(int64_t{128}));
  }
  EXPECT_EQ(seen.size(), 2u);
}

TEST(Random, ProposalsAreInTheOrderOfTheFile) {
  const Random random(Conditional(), 7);
  for (uint32_t trial = 0; trial < 20; ++trial) {
    const Config config = DrawConfig(random, trial);
    if (config.entries().size() == 3) {
      EXPECT_EQ(config.entries().front().first, "momentum");
    }
    EXPECT_EQ(config.entries().back().first, "batch");
  }
}

TEST(Random, ANewParameterDoesNotChangeTheOthers) {
  const Parameter lr{"lr", FloatDomain{.min = 0, .max = 1}, {}};
  const Parameter width{"width", IntDomain{.min = 1, .max = 99}, {}};

  EXPECT_EQ(Column(SearchSpace({lr}), "lr", 20), Column(SearchSpace({width, lr}), "lr", 20));
}

TEST(Random, AnotherSeedGivesOtherProposals) {
  const SearchSpace space({{"lr", FloatDomain{.min = 0, .max = 1}}});
  EXPECT_NE(DrawConfig(Random(space, 1), 0), DrawConfig(Random(space, 2), 0));
}

TEST(Random, RequiresALimitInStop) {
  const SweepSpec spec{.program = {.command = {"train"}}, .space = Conditional()};
  EXPECT_EQ(RandomEntry().make(spec).error().code, ErrorCode::kInvalid);
  EXPECT_TRUE(RandomEntry().make(spec).error().message.starts_with("stop: "));
}

TEST(Random, AcceptsAnyLimit) {
  for (const StopPolicy& stop :
       {StopPolicy{.max_trials = 1}, StopPolicy{.max_time = Seconds(1)},
        StopPolicy{.max_gpu_hours = 1}, StopPolicy{.patience = 1}, StopPolicy{.targets = {0.1}}}) {
    SweepSpec spec;
    spec.program.command = {"train"};
    spec.space = Conditional();
    spec.gang.per_worker.gpus = 1;
    spec.stop = stop;
    EXPECT_TRUE(RandomEntry().make(spec).ok());
  }
}

TEST(Random, GpuHoursAreNoLimitWithoutGpus) {
  const SweepSpec spec{
      .program = {.command = {"train"}}, .space = Conditional(), .stop = {.max_gpu_hours = 1}};
  EXPECT_FALSE(RandomEntry().make(spec).ok());
}

TEST(Random, NeedsNoLimitIfAnotherProgramAsks) {
  EXPECT_TRUE(RandomEntry().make({.space = Conditional()}).ok());
}

std::string Line(const Config& config) {
  std::string line;
  for (const auto& [name, value] : config.entries())
    line += (line.empty() ? "" : " ") + FormatValue(value);
  return line;
}

// The proposals until the searcher is exhausted, at most `limit`.
std::vector<Config> ProposedBy(const std::string& name, const SearchSpace& space, uint32_t limit) {
  const SweepSpec spec{.space = space, .seed = 3};
  const auto searcher = (name == "random" ? RandomEntry() : SobolEntry()).make(spec).value();
  std::vector<Config> proposed;
  while (proposed.size() < limit) {
    const auto number = static_cast<uint32_t>(proposed.size());
    const Suggestion suggestion = searcher->Suggest(ProposalNumber(number));
    const auto* next = std::get_if<Proposed>(&suggestion);
    if (next == nullptr) break;
    proposed.push_back(next->config);
    searcher->Observe(
        {.fact = TrialCreated{.trial = {SweepId(1), TrialNumber(number)}, .config = next->config}});
  }
  return proposed;
}

TEST(Random, AFiniteSpaceIsProposedOnce) {
  const SearchSpace space({{"n", IntDomain{.min = 1, .max = 7}},
                           {"kind", CategoricalDomain{{std::string("a"), std::string("b")}}}});
  for (const std::string name : {"random", "sobol"}) {
    const std::vector<Config> proposed = ProposedBy(name, space, 100);
    std::set<std::string> different;
    for (const Config& config : proposed) different.insert(Line(config));
    EXPECT_EQ(proposed.size(), 14u) << name;
    EXPECT_EQ(different.size(), 14u) << name;
  }
}

TEST(Random, RepeatsTheOnlyConfiguration) {
  const std::vector<Parameter> none;
  const std::vector<Parameter> constant{{"n", ConstantDomain{.value = int64_t{1}}}};
  const std::vector<Parameter> one_value{{"n", IntDomain{.min = 2, .max = 2}}};
  for (const auto& parameters : {none, constant, one_value}) {
    const SearchSpace space(parameters);
    EXPECT_EQ(ProposedBy("random", space, 5).size(), 5u);
    EXPECT_EQ(ProposedBy("sobol", space, 5).size(), 5u);
  }
}

std::vector<Parameter> MixedParameters() {
  return {{"x", FloatDomain{.min = -5, .max = 5}},
          {"lr", FloatDomain{.min = 1e-6, .max = 1, .scale = Scale::kLog}},
          {"steps", FloatDomain{.min = 0.1, .max = 0.9, .scale = Scale::kLog, .step = 0.1}},
          {"n", IntDomain{.min = 1, .max = 100}},
          {"kind", CategoricalDomain{{std::string("a"), std::string("b"), std::string("c")}}}};
}

// Golden: other values mean that running sweeps would get other proposals.
TEST(Random, TheBitsOfAProposalAreGolden) {
  const Random random(SearchSpace(MixedParameters()), 7);
  EXPECT_EQ(Line(DrawConfig(random, 0)), "4.7922308131523685 1.0457221578355152e-06 0.2 92 c");
  EXPECT_EQ(Line(DrawConfig(random, 1000)), "-4.400479676913625 6.0896541616596734e-05 0.2 70 a");
}

}  // namespace
}  // namespace attune::searchers
