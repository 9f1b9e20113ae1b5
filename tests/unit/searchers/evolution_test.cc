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
#include "tests/unit/searchers/problems.h"

namespace attune::searchers {
namespace {

TEST(Evolution, FindsBetterThanRandomSearchDoes) {
  int wins = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Evolution evolution(SpecOf(EvolutionEntry(), Plane(), seed));
    Random random(SearchSpace(Plane()), seed);
    wins += BestOf(evolution, 100, Bowl) < BestOf(random, 100, Bowl);
  }
  EXPECT_GE(wins, 18);
}

TEST(Evolution, AChildDiffersFromItsParentInOneParameter) {
  Evolution evolution(SpecOf(EvolutionEntry(), Plane()));
  History history(evolution);
  for (int i = 0; i < 20; ++i) history.Done({{"x", 1.0}, {"y", 2.0}}, 1);
  std::set<std::string> mutated;
  for (uint32_t i = 0; i < 50; ++i) {
    const Config child = std::get<Proposed>(evolution.Suggest(ProposalNumber(i))).config;
    const bool x = std::abs(Real(child, "x") - 1) > 1e-9;
    const bool y = std::abs(Real(child, "y") - 2) > 1e-9;
    EXPECT_NE(x, y);
    mutated.insert(x ? "x" : "y");
  }
  EXPECT_EQ(mutated.size(), 2u);
}

TEST(Evolution, RemovesTheBestTrialWhenItIsOld) {
  Evolution evolution(SpecOf(EvolutionEntry(), Plane()));
  History history(evolution);
  history.Done({{"x", -5.0}, {"y", -5.0}}, -1000);
  for (int i = 0; i < 20; ++i) history.Done({{"x", 5.0}, {"y", 5.0}}, 1);
  for (uint32_t i = 0; i < 50; ++i) {
    const Config child = std::get<Proposed>(evolution.Suggest(ProposalNumber(i))).config;
    EXPECT_GT(Real(child, "x") + Real(child, "y"), -2);
  }
}

// Golden: other values mean that running sweeps would get other proposals.
TEST(Evolution, TheBitsOfAProposalAreGolden) {
  Evolution evolution(SpecOf(EvolutionEntry(), Plane(), 7));
  BestOf(evolution, 50, Bowl);
  const Config config = std::get<Proposed>(evolution.Suggest(ProposalNumber(50))).config;
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

// The objectives are best at opposite ends of u, and both at v = 0.3.
void Tell(History<Searcher>& history, const Config& config) {
  const double off = std::abs(Real(config, "v") - 0.3);
  const uint32_t trial = history.Create(config);
  history.Report(trial, {{"loss", Real(config, "u") + off}, {"speed", Real(config, "u") - off}});
  history.End(trial);
}

TEST(Nsga2, FindsTheWholeFront) {
  Nsga2 nsga2(Two());
  History<Searcher> history(nsga2);
  int close = 0;
  int low = 0;
  int high = 0;
  for (uint32_t i = 0; i < 300; ++i) {
    const Config config = std::get<Proposed>(nsga2.Suggest(ProposalNumber(i))).config;
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

TEST(Nsga2, FailedTrialsAreNeverParents) {
  Nsga2 nsga2(Two());
  History<Searcher> history(nsga2);
  for (int i = 0; i < 40; ++i) Tell(history, {{"u", 0.9}, {"v", 0.9}});
  const Suggestion before = nsga2.Suggest(ProposalNumber(99));
  for (int i = 0; i < 40; ++i) {
    history.End(history.Create({{"u", 0.1}, {"v", 0.1}}), TrialState::kFailed);
  }
  EXPECT_EQ(nsga2.Suggest(ProposalNumber(99)), before);
}

TEST(Nsga2, FeasibleTrialsReplaceInfeasibleOnes) {
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
    EXPECT_GT(Real(std::get<Proposed>(nsga2.Suggest(ProposalNumber(i))).config, "u"), 0.5);
  }
}

// Golden: as above.
TEST(Nsga2, TheBitsOfAProposalAreGolden) {
  Nsga2 nsga2(Two(7));
  History<Searcher> history(nsga2);
  for (uint32_t i = 0; i < 60; ++i) {
    Tell(history, std::get<Proposed>(nsga2.Suggest(ProposalNumber(i))).config);
  }
  const Config config = std::get<Proposed>(nsga2.Suggest(ProposalNumber(60))).config;
  EXPECT_EQ(FormatReal(Real(config, "u")) + " " + FormatReal(Real(config, "v")),
            "0.00039982835340202083 0.3438109091948718");
}

}  // namespace
}  // namespace attune::searchers
