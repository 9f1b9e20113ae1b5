#include "core/space/search_space.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace attune {
namespace {

using ::testing::ElementsAre;

Value Text(const char* text) { return std::string(text); }

// momentum exists for sgd, and nesterov if momentum is at least 0.5. Both come before their parents
// in the file.
SearchSpace Space() {
  return SearchSpace({
      {"nesterov", CategoricalDomain{{true, false}}, {{.parent = "momentum", .at_least = 0.5}}},
      {"momentum", FloatDomain{.min = 0, .max = 0.9}, {{"optimizer", {Text("sgd")}}}},
      {"optimizer", CategoricalDomain{{Text("sgd"), Text("adamw")}}},
      {"batch", ConstantDomain{int64_t{128}}},
  });
}

TEST(SearchSpace, OrderPutsParentsFirstAndKeepsTheFilesOrder) {
  EXPECT_THAT(Space().order(), ElementsAre(2, 1, 0, 3));
}

TEST(SearchSpace, FindsAParameterByName) {
  const SearchSpace space = Space();
  EXPECT_EQ(space.Find("optimizer"), &space.parameters()[2]);
  EXPECT_EQ(space.Find("optimiser"), nullptr);
}

TEST(SearchSpace, AParameterWithoutConditionsIsAlwaysActive) {
  const SearchSpace space = Space();
  EXPECT_TRUE(space.IsActive(*space.Find("optimizer"), Config{}));
}

TEST(SearchSpace, AParameterIsActiveWhileItsParentHasTheValue) {
  const SearchSpace space = Space();
  const Parameter& momentum = *space.Find("momentum");
  EXPECT_TRUE(space.IsActive(momentum, {{"optimizer", Text("sgd")}}));
  EXPECT_FALSE(space.IsActive(momentum, {{"optimizer", Text("adamw")}}));
}

TEST(SearchSpace, AnAbsentParentHidesItsChildren) {
  const SearchSpace space = Space();
  EXPECT_FALSE(space.IsActive(*space.Find("momentum"), Config{}));
  EXPECT_FALSE(space.IsActive(*space.Find("nesterov"), {{"optimizer", Text("adamw")}}));
}

TEST(SearchSpace, BoundsOfAConditionAreIncluded) {
  const SearchSpace space({
      {"layers", IntDomain{.min = 1, .max = 8}},
      {"skip", ConstantDomain{true}, {{.parent = "layers", .at_least = 4, .at_most = 6}}},
  });
  const Parameter& skip = *space.Find("skip");
  EXPECT_FALSE(space.IsActive(skip, {{"layers", int64_t{3}}}));
  EXPECT_TRUE(space.IsActive(skip, {{"layers", int64_t{4}}}));
  EXPECT_TRUE(space.IsActive(skip, {{"layers", int64_t{6}}}));
  EXPECT_FALSE(space.IsActive(skip, {{"layers", int64_t{7}}}));
}

TEST(SearchSpace, AllConditionsMustHold) {
  const SearchSpace space({
      {"a", CategoricalDomain{{true, false}}},
      {"b", CategoricalDomain{{true, false}}},
      {"c", ConstantDomain{int64_t{1}}, {{"a", {true}}, {"b", {true}}}},
  });
  EXPECT_TRUE(space.IsActive(*space.Find("c"), {{"a", true}, {"b", true}}));
  EXPECT_FALSE(space.IsActive(*space.Find("c"), {{"a", true}, {"b", false}}));
}

TEST(SearchSpace, ResolveFillsConstantsAndKeepsTheFilesOrder) {
  const auto resolved = Space().Resolve({{"optimizer", Text("sgd")}, {"momentum", int64_t{0}}});

  EXPECT_EQ(*resolved,
            (Config{{"momentum", 0.0}, {"optimizer", Text("sgd")}, {"batch", int64_t{128}}}));
}

TEST(SearchSpace, ResolvingTwiceChangesNothing) {
  const auto once =
      Space().Resolve({{"optimizer", Text("sgd")}, {"momentum", 0.9}, {"nesterov", true}});
  EXPECT_EQ(*Space().Resolve(*once), *once);
}

TEST(SearchSpace, ResolveNamesTheParameterAtFault) {
  const SearchSpace space = Space();
  std::string messages;
  const auto refuse = [&](const Config& config, const std::string& parameter) {
    const auto resolved = space.Resolve(config);
    ASSERT_FALSE(resolved.ok());
    EXPECT_THAT(resolved.error().message, ::testing::StartsWith(parameter + ": "));
    messages += resolved.error().message + "\n";
  };
  refuse({{"optimizer", Text("sgd")}}, "momentum");
  refuse({{"optimizer", Text("sgd")}, {"momentum", 2.0}}, "momentum");
  refuse({{"optimizer", Text("adamw")}, {"momentum", 0.5}}, "momentum");
  refuse({{"optimizer", Text("adamw")}, {"nesterov", true}}, "nesterov");
  refuse({{"optimizer", Text("adamw")}, {"lr", 0.5}}, "lr");
  testing::ExpectGolden("core/space/search_space", messages);
}

}  // namespace
}  // namespace attune
