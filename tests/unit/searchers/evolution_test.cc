// Both searchers that mutate: ageing evolution and NSGA-II.

#include "searchers/evolution.h"

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "searchers/nsga2.h"
#include "searchers/random.h"
#include "tests/unit/searchers/history.h"

namespace attune::searchers {
namespace {

SweepSpec SpecOf(const Entry<Searcher>& entry, std::vector<Parameter> parameters,
                 uint64_t seed = 1) {
  SweepSpec spec{.objectives = {Minimise("loss")},
                 .space = SearchSpace(std::move(parameters)),
                 .searcher = {.name = entry.name},
                 .seed = seed};
  for (const Option& option : entry.options) {
    spec.searcher.options.emplace(option.name, option.fallback);
  }
  return spec;
}

std::vector<Parameter> Plane() {
  return {{"x", FloatDomain{.min = -5, .max = 5}}, {"y", FloatDomain{.min = -5, .max = 5}}};
}

double Real(const Config& config, std::string_view name) {
  return std::get<double>(*config.Find(name));
}

double Loss(const Config& config) {
  return std::pow(Real(config, "x") - 2, 2) + std::pow(Real(config, "y") + 1, 2);
}

double BestOf(Searcher& searcher, uint32_t trials) {
  History history(searcher);
  double best = std::numeric_limits<double>::infinity();
  for (uint32_t i = 0; i < trials; ++i) {
    const Config config = std::get<Config>(searcher.Suggest(ProposalNumber(i)));
    history.Done(config, Loss(config));
    best = std::min(best, Loss(config));
  }
  return best;
}

TEST(Evolution, FindsBetterThanRandomSearchDoes) {
  int wins = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Evolution evolution(SpecOf(EvolutionEntry(), Plane(), seed));
    Random random(SearchSpace(Plane()), seed);
    wins += BestOf(evolution, 100) < BestOf(random, 100);
  }
  EXPECT_GE(wins, 18);
}

TEST(Evolution, AChildDiffersFromItsParentInOneParameter) {
  Evolution evolution(SpecOf(EvolutionEntry(), Plane()));
  History history(evolution);
  for (int i = 0; i < 20; ++i) history.Done({{"x", 1.0}, {"y", 2.0}}, 1);
  std::set<std::string> mutated;
  for (uint32_t i = 0; i < 50; ++i) {
    const Config child = std::get<Config>(evolution.Suggest(ProposalNumber(i)));
    const bool x = std::abs(Real(child, "x") - 1) > 1e-9;
    const bool y = std::abs(Real(child, "y") - 2) > 1e-9;
    EXPECT_NE(x, y);
    mutated.insert(x ? "x" : "y");
  }
  EXPECT_EQ(mutated.size(), 2u);
}

TEST(Evolution, TheBestDiesOfAge) {
  Evolution evolution(SpecOf(EvolutionEntry(), Plane()));
  History history(evolution);
  history.Done({{"x", -5.0}, {"y", -5.0}}, -1000);
  for (int i = 0; i < 20; ++i) history.Done({{"x", 5.0}, {"y", 5.0}}, 1);
  for (uint32_t i = 0; i < 50; ++i) {
    const Config child = std::get<Config>(evolution.Suggest(ProposalNumber(i)));
    EXPECT_GT(Real(child, "x") + Real(child, "y"), -2);
  }
}

// Golden: another sequence of proposals means that sweeps in progress go on otherwise.
TEST(Evolution, TheBitsOfAProposalAreGolden) {
  Evolution evolution(SpecOf(EvolutionEntry(), Plane(), 7));
  BestOf(evolution, 50);
  const Config config = std::get<Config>(evolution.Suggest(ProposalNumber(50)));
  EXPECT_EQ(FormatReal(Real(config, "x")) + " " + FormatReal(Real(config, "y")),
            "2.235634855603182 1.2871229225079066");
}

SweepSpec Two(uint64_t seed = 1) {
  SweepSpec spec = SpecOf(
      Nsga2Entry(),
      {{"u", FloatDomain{.min = 0, .max = 1}}, {"v", FloatDomain{.min = 0, .max = 1}}}, seed);
  spec.objectives = {Minimise("loss"), Maximise("speed")};
  return spec;
}

// Opposite ends of u are wanted, and v at 0.3.
void Tell(History<Searcher>& history, const Config& config) {
  const double off = std::abs(Real(config, "v") - 0.3);
  const uint32_t trial = history.Create(config);
  history.Report(trial, {{"loss", Real(config, "u") + off}, {"speed", Real(config, "u") - off}});
  history.End(trial);
}

TEST(Nsga2, TheWholeFrontIsSought) {
  Nsga2 nsga2(Two());
  History<Searcher> history(nsga2);
  int close = 0;
  int low = 0;
  int high = 0;
  for (uint32_t i = 0; i < 300; ++i) {
    const Config config = std::get<Config>(nsga2.Suggest(ProposalNumber(i)));
    Tell(history, config);
    if (i < 200) continue;
    close += std::abs(Real(config, "v") - 0.3) < 0.1;
    low += Real(config, "u") < 0.35;
    high += Real(config, "u") > 0.65;
  }
  EXPECT_GE(close, 70);  // of 100; by chance 20
  EXPECT_GE(low, 20);
  EXPECT_GE(high, 20);
}

TEST(Nsga2, FailedTrialsAreNoParents) {
  Nsga2 nsga2(Two());
  History<Searcher> history(nsga2);
  for (int i = 0; i < 40; ++i) Tell(history, {{"u", 0.9}, {"v", 0.9}});
  const Suggestion before = nsga2.Suggest(ProposalNumber(99));
  for (int i = 0; i < 40; ++i) {
    history.End(history.Create({{"u", 0.1}, {"v", 0.1}}), TrialState::kFailed);
  }
  EXPECT_EQ(nsga2.Suggest(ProposalNumber(99)), before);
}

TEST(Nsga2, WhoIsOutsideOfTheConstraintsGivesWayToWhoIsNot) {
  SweepSpec spec = Two();
  spec.constraints = {{.metric = "ms", .max = 10}};
  Nsga2 nsga2(spec);
  History<Searcher> history(nsga2);
  const auto tell = [&](double u, double ms) {
    const uint32_t trial = history.Create({{"u", u}, {"v", 0.5}});
    history.Report(trial, {{"loss", u}, {"speed", 1 - u}, {"ms", ms}});
    history.End(trial);
  };
  for (int i = 0; i < 40; ++i) tell(0.0, 20);  // far better, and not allowed
  for (int i = 0; i < 40; ++i) tell(1.0, 5);
  for (uint32_t i = 0; i < 20; ++i) {
    EXPECT_GT(Real(std::get<Config>(nsga2.Suggest(ProposalNumber(i))), "u"), 0.5);
  }
}

TEST(Nsga2, AFiniteSpaceIsUsedUpWithoutARepeat) {
  SweepSpec spec = SpecOf(Nsga2Entry(), {{"a", IntDomain{.min = 1, .max = 10}},
                                         {"b", CategoricalDomain{{true, false, int64_t{3}}}},
                                         {"c", IntDomain{.min = 0, .max = 3}, {{"b", {true}}}}});
  Nsga2 nsga2(spec);
  History history(nsga2);
  std::set<std::string> seen;
  for (uint32_t i = 0; i < 100; ++i) {
    const Suggestion suggestion = nsga2.Suggest(ProposalNumber(i));
    if (std::holds_alternative<Exhausted>(suggestion)) break;
    std::string text;
    for (const auto& [name, value] : std::get<Config>(suggestion).entries()) {
      text += name + FormatValue(value) + " ";
    }
    EXPECT_TRUE(seen.insert(text).second) << text;
    history.Done(std::get<Config>(suggestion), static_cast<double>(i % 7));
  }
  EXPECT_EQ(seen.size(), 10u * (4 + 2));
}

// Golden: as above.
TEST(Nsga2, TheBitsOfAProposalAreGolden) {
  Nsga2 nsga2(Two(7));
  History<Searcher> history(nsga2);
  for (uint32_t i = 0; i < 60; ++i) {
    Tell(history, std::get<Config>(nsga2.Suggest(ProposalNumber(i))));
  }
  const Config config = std::get<Config>(nsga2.Suggest(ProposalNumber(60)));
  EXPECT_EQ(FormatReal(Real(config, "u")) + " " + FormatReal(Real(config, "v")),
            "0.00039982835340202083 0.3438109091948718");
}

}  // namespace
}  // namespace attune::searchers
