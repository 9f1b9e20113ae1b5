#include "schedulers/bandit.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/random.h"

namespace attune::schedulers {
namespace {

// A rate over four decades, and a choice.
SearchSpace Space() {
  return SearchSpace(
      {{.name = "lr", .domain = FloatDomain{.min = 1e-4, .max = 1, .scale = Scale::kLog}},
       {.name = "kind", .domain = CategoricalDomain{{std::string("a"), std::string("b")}}}});
}

Config ConfigAt(double decades) {
  return {{"lr", std::pow(10, decades)}, {"kind", std::string("b")}};
}
double Decades(const Config& config) { return std::log10(std::get<double>(*config.Find("lr"))); }

// Gains for rates over the whole range; larger near the best rate. `from` is the first interval.
std::vector<Gain> GainsAround(double best, int64_t from, int count = 20) {
  std::vector<Gain> gains;
  for (int i = 0; i < count; ++i) {
    const double decades = -4.0 * i / (count - 1);
    gains.push_back({.config = ConfigAt(decades),
                     .interval = from + i % 2,
                     .before = 0.5,
                     .gain = 0.1 - 0.02 * (decades - best) * (decades - best)});
  }
  return gains;
}

std::optional<Promise> Choose(const std::vector<Gain>& gains,
                              const std::vector<Config>& training = {}, int64_t interval = 3,
                              int64_t count = 0, const Exploration& exploration = {}) {
  return MostPromising(Space(), ConfigAt(-2), exploration, gains, training, interval, 0.5, 7,
                       TrialNumber(1), count);
}

TEST(Bandit, ChoosesWhereTheGainsWere) {
  for (const double best : {-3.2, -2.0, -0.9}) {
    const auto chosen = Choose(GainsAround(best, 1));
    ASSERT_TRUE(chosen);
    EXPECT_NEAR(Decades(chosen->config), best, 0.4);
    EXPECT_NEAR(chosen->gain, 0.1, 0.02);
    EXPECT_EQ(chosen->gains, 20u);
    EXPECT_EQ(*chosen->config.Find("kind"), Value(std::string("b"))) << "a choice is the base's";
  }
}

TEST(Bandit, EarlyGainsCountLess) {
  std::vector<Gain> gains = GainsAround(-3.2, 1);
  for (Gain& gain : GainsAround(-0.9, 18)) gains.push_back(std::move(gain));
  const auto chosen = Choose(gains, {}, 20);
  ASSERT_TRUE(chosen);
  EXPECT_NEAR(Decades(chosen->config), -0.9, 0.6);
}

TEST(Bandit, ConfigurationsInTrainingLowerTheDeviation) {
  const std::vector<Gain> gains = GainsAround(-2, 1, 5);
  const auto alone = Choose(gains);
  ASSERT_TRUE(alone);
  const auto beside = Choose(gains, {alone->config, alone->config, alone->config});
  ASSERT_TRUE(beside);
  EXPECT_NE(Decades(alone->config), Decades(beside->config));
}

TEST(Bandit, DrawsDifferByDecisionAndRepeatInAReplay) {
  const std::vector<Gain> gains = GainsAround(-2, 1);
  EXPECT_EQ(Choose(gains)->config, Choose(gains)->config);
  EXPECT_NE(Choose(gains)->config, Choose(gains, {}, 3, 1)->config);
}

TEST(Bandit, ReturnsNothingWithTooFewGains) {
  std::vector<Gain> gains = GainsAround(-2, 1);
  gains.resize(kGainsMin - 1);
  EXPECT_FALSE(Choose(gains));
  gains = GainsAround(-2, 1);
  for (Gain& gain : gains) gain.gain = 0;
  EXPECT_FALSE(Choose(gains)) << "all are equal";
  const SearchSpace choices(
      {{.name = "kind", .domain = CategoricalDomain{{std::string("a"), std::string("b")}}}});
  EXPECT_FALSE(MostPromising(choices, {{"kind", std::string("a")}}, {}, GainsAround(-2, 1), {}, 3,
                             0.5, 7, TrialNumber(1), 0));
  EXPECT_TRUE(Choose(GainsAround(-2, 1), {}, 3, 0, {.parameters = {"lr"}}));
  EXPECT_FALSE(Choose(GainsAround(-2, 1), {}, 3, 0, {.parameters = {"kind"}}))
      << "no number may be changed";
}

TEST(Bandit, TakesGainsOfAnyKind) {
  std::vector<Gain> gains = GainsAround(-2, 1, 150);  // more than are used, many at one place
  for (Gain& gain : gains) gain.config = ConfigAt(-2);
  gains[140].gain = 1e300;
  gains[141].gain = -1e300;
  gains[142].before = 1e300;
  const auto chosen = Choose(gains);
  if (chosen) {
    EXPECT_TRUE(Space().Resolve(chosen->config).ok());
  }
  for (Gain& gain : gains) gain.gain *= 1e-300;
  gains[149].config = {{"kind", std::string("a")}};  // from before an edit of the space
  if (const auto tiny = Choose(gains)) {
    EXPECT_TRUE(Space().Resolve(tiny->config).ok());
  }
}

}  // namespace
}  // namespace attune::schedulers
