#include "schedulers/explore.h"

#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "core/space/domain.h"
#include "core/space/draw.h"
#include "tests/conformance/random_space.h"

namespace attune::schedulers {
namespace {

using ::testing::UnorderedElementsAre;

const Exploration kPerturb{.resample_probability = 0};
const Exploration kResample{.resample_probability = 1};

SearchSpace SpaceOf(Domain domain) {
  return SearchSpace({{.name = "p", .domain = std::move(domain)}});
}

// The values that come of one, over many trials.
std::set<Value> From(const Domain& domain, const Value& value,
                     const Exploration& exploration = kPerturb) {
  std::set<Value> seen;
  for (uint32_t trial = 0; trial < 200; ++trial)
    seen.insert(
        *Explore(SpaceOf(domain), {{"p", value}}, exploration, 7, TrialNumber(trial), 0).Find("p"));
  return seen;
}

TEST(Explore, ARealIsMultipliedAndKeptWithinItsRange) {
  const FloatDomain range{.min = 0.1, .max = 1, .scale = Scale::kLog};
  EXPECT_THAT(From(range, 0.5), UnorderedElementsAre(Value(0.5 * 0.8), Value(0.5 * 1.2)));
  EXPECT_THAT(From(range, 0.9), UnorderedElementsAre(Value(0.9 * 0.8), Value(1.0)));
  EXPECT_THAT(From(range, 0.11), UnorderedElementsAre(Value(0.1), Value(0.11 * 1.2)));
}

TEST(Explore, AnIntegerGoesToTheNearestAndAtLeastAStep) {
  EXPECT_THAT(From(IntDomain{.min = 1, .max = 100}, int64_t{50}),
              UnorderedElementsAre(Value(int64_t{40}), Value(int64_t{60})));
  EXPECT_THAT(From(IntDomain{.min = 1, .max = 100}, int64_t{2}),
              UnorderedElementsAre(Value(int64_t{1}), Value(int64_t{3})));
  EXPECT_THAT(From(IntDomain{.min = 0, .max = 9}, int64_t{0}),
              UnorderedElementsAre(Value(int64_t{0}), Value(int64_t{1})));
  EXPECT_THAT(From(IntDomain{.min = 16, .max = 128, .step = 16}, int64_t{128}),
              UnorderedElementsAre(Value(int64_t{96}), Value(int64_t{128})));
  EXPECT_THAT(From(IntDomain{.min = -10, .max = 10}, int64_t{-2}),
              UnorderedElementsAre(Value(int64_t{-3}), Value(int64_t{-1})));
}

TEST(Explore, KeepsParametersThatAreNotExplored) {
  const SearchSpace space({{.name = "lr", .domain = FloatDomain{.min = 0, .max = 1}},
                           {.name = "width", .domain = IntDomain{.min = 1, .max = 512}}});
  Exploration only{.resample_probability = 1, .parameters = {"lr"}};
  std::set<Value> rates;
  for (uint32_t trial = 0; trial < 20; ++trial) {
    const Config explored =
        Explore(space, {{"lr", 0.5}, {"width", int64_t{64}}}, only, 7, TrialNumber(trial), 0);
    rates.insert(*explored.Find("lr"));
    EXPECT_EQ(*explored.Find("width"), Value(int64_t{64}));
  }
  EXPECT_EQ(rates.size(), 20u);
  // An edit has put it outside of its range, or it is new.
  for (const Config& config : {Config{{"lr", 0.5}, {"width", int64_t{1000}}}, Config{{"lr", 0.5}}})
    EXPECT_TRUE(Explore(space, config, only, 7, TrialNumber(0), 0).Find("width"));
}

TEST(Explore, StepsOfRealsAreShortDecimals) {
  EXPECT_THAT(From(FloatDomain{.min = 0, .max = 1, .step = 0.1}, 0.3),
              UnorderedElementsAre(Value(0.2), Value(0.4)));
}

TEST(Explore, TheLargestRangesDoNotOverflow) {
  constexpr int64_t kMax = int64_t{1} << 53;
  for (const Value& value : From(IntDomain{.min = 1, .max = kMax}, kMax))
    EXPECT_GE(std::get<int64_t>(value), kMax / 10 * 7);
}

TEST(Explore, AChoiceAmongNumbersGoesToItsNeighbour) {
  const CategoricalDomain sizes{{int64_t{32}, int64_t{64}, int64_t{128}}};
  EXPECT_THAT(From(sizes, int64_t{64}),
              UnorderedElementsAre(Value(int64_t{32}), Value(int64_t{128})));
  EXPECT_THAT(From(sizes, int64_t{32}),
              UnorderedElementsAre(Value(int64_t{32}), Value(int64_t{64})));
}

TEST(Explore, OtherChoicesStayUnlessResampled) {
  const CategoricalDomain names{{std::string("sgd"), std::string("adam"), std::string("lion")}};
  EXPECT_THAT(From(names, std::string("adam")), UnorderedElementsAre(Value(std::string("adam"))));
  EXPECT_EQ(From(names, std::string("adam"), kResample).size(), 3u);
}

TEST(Explore, MovesValuesThatAnEditPutOutside) {
  EXPECT_THAT(From(FloatDomain{.min = 0, .max = 1}, 5.0), UnorderedElementsAre(Value(1.0)));
  const CategoricalDomain names{{std::string("sgd"), std::string("adam")}};
  EXPECT_EQ(From(names, std::string("lion")).size(), 2u);
}

TEST(Explore, ResamplesWithTheGivenProbability) {
  const FloatDomain range{.min = 0, .max = 1};
  int resampled = 0;
  for (uint32_t trial = 0; trial < 2'000; ++trial) {
    const Config drawn = Explore(SpaceOf(range), {{"p", 0.5}}, {}, 7, TrialNumber(trial), 3);
    const double value = std::get<double>(*drawn.Find("p"));
    resampled += value != 0.5 * 0.8 && value != 0.5 * 1.2;
  }
  EXPECT_NEAR(resampled, 500, 60);  // three standard deviations
}

TEST(Explore, ConditionsHoldForTheNewValues) {
  const SearchSpace space({{.name = "optimizer",
                            .domain = CategoricalDomain{{std::string("sgd"), std::string("adam")}}},
                           {.name = "momentum",
                            .domain = FloatDomain{.min = 0, .max = 1},
                            .when = {{.parent = "optimizer", .any_of = {std::string("sgd")}}}},
                           {.name = "beta",
                            .domain = FloatDomain{.min = 0, .max = 1},
                            .when = {{.parent = "optimizer", .any_of = {std::string("adam")}}}}});
  const Config config{{"optimizer", std::string("sgd")}, {"momentum", 0.5}};
  std::set<Value> optimizers;
  for (uint32_t trial = 0; trial < 50; ++trial) {
    const Config explored = Explore(space, config, kResample, 7, TrialNumber(trial), 0);
    const Value optimizer = *explored.Find("optimizer");
    optimizers.insert(optimizer);
    EXPECT_EQ(explored.Find("momentum") != nullptr, optimizer == Value(std::string("sgd")));
    EXPECT_EQ(explored.Find("beta") != nullptr, optimizer == Value(std::string("adam")));
  }
  EXPECT_EQ(optimizers.size(), 2u);
}

TEST(Explore, IsKeyedBySeedTrialAndCount) {
  const SearchSpace space = SpaceOf(FloatDomain{.min = 0, .max = 1});
  const Config config{{"p", 0.5}};
  const auto draw = [&](uint64_t seed, uint32_t trial, int64_t count) {
    return *Explore(space, config, kResample, seed, TrialNumber(trial), count).Find("p");
  };
  EXPECT_EQ(draw(7, 1, 2), draw(7, 1, 2));
  EXPECT_EQ((std::set<Value>{draw(7, 1, 2), draw(8, 1, 2), draw(7, 2, 2), draw(7, 1, 3)}).size(),
            4u);
}

TEST(Explore, StaysInAnySpace) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const SearchSpace space = conformance::RandomSpace(seed, seed % 2 == 0);
    Config config;
    for (int64_t count = 0; count < 5; ++count) {
      config = Explore(space, config, {}, seed, TrialNumber(3), count);
      const auto resolved = space.Resolve(config);
      ASSERT_TRUE(resolved.ok()) << seed << ": " << resolved.error().message;
      ASSERT_EQ(*resolved, config) << seed;
    }
  }
}

TEST(Explore, DescribesChanges) {
  EXPECT_EQ(DescribeChanges({{"lr", 0.1}, {"depth", int64_t{3}}, {"m", 0.5}},
                            {{"lr", 0.12}, {"depth", int64_t{3}}, {"beta", 0.25}}),
            "lr 0.1 → 0.12, beta none → 0.25, m 0.5 → none");
  EXPECT_EQ(DescribeChanges({{"lr", 0.1}}, {{"lr", 0.1}}), "nothing");
}

}  // namespace
}  // namespace attune::schedulers
