#include "searchers/tpe.h"

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "searchers/random.h"
#include "tests/unit/searchers/problems.h"

namespace attune::searchers {
namespace {

Value Text(const char* text) { return std::string(text); }

SweepSpec SpecOf(std::vector<Parameter> parameters, uint64_t seed = 1) {
  return searchers::SpecOf(TpeEntry(), std::move(parameters), seed);
}

SweepSpec Plane(uint64_t seed = 1) {
  return SpecOf({{"x", FloatDomain{.min = -5, .max = 5}},
                 {"lr", FloatDomain{.min = 1e-6, .max = 1, .scale = Scale::kLog}}},
                seed);
}

// 0 at x = 2, lr = 1e-4.
double Loss(const Config& config) {
  return std::pow((Real(config, "x") - 2) / 10, 2) +
         std::pow((std::log10(Real(config, "lr")) + 4) / 6, 2);
}

TEST(Tpe, FindsBetterThanRandomSearchDoes) {
  int wins = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Tpe tpe(Plane(seed));
    Random random(Plane().space, seed);
    wins += BestOf(tpe, 60, Loss) < BestOf(random, 60, Loss);
  }
  EXPECT_GE(wins, 18);
}

// Golden: other values mean that running sweeps would get other proposals.
TEST(Tpe, TheBitsOfAProposalAreGolden) {
  Tpe tpe(Plane(7));
  BestOf(tpe, 40, Loss);
  const Config config = std::get<Proposed>(tpe.Suggest(ProposalNumber(40))).config;
  EXPECT_EQ(FormatReal(Real(config, "x")) + " " + FormatReal(Real(config, "lr")),
            "2.4854173014820704 2.4596354975798067e-05");
}

TEST(Tpe, TheBitsOfAProposalWithManyWorkersAreGolden) {
  Tpe tpe(Plane(7));
  BestOf(tpe, 40, Loss, 20);
  for (uint32_t i = 40; i < 60; ++i) {
    tpe.Observe({EventSeq(1000 + i), Time{0},
                 TrialCreated{.trial = {SweepId(1), TrialNumber(i)}, .config = Ask(tpe, i)}});
  }
  const Config config = Ask(tpe, 60);
  EXPECT_EQ(FormatReal(Real(config, "x")) + " " + FormatReal(Real(config, "lr")),
            "1.9999994133197312 9.999997477497144e-05");
}

// Without the fit, the error would be about a hundredth of the width.
TEST(Tpe, FindsTheMinimumOfABowlToManyDigits) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Tpe tpe(Plane(seed));
    EXPECT_LT(BestOf(tpe, 40, Loss), 1e-6) << seed;
    Tpe with_workers(Plane(seed));
    EXPECT_LT(BestOf(with_workers, 64, Loss, 32), 1e-4) << seed << ": two rounds of 32";
  }
}

// The fit knows nothing about listed values that no good result has.
TEST(Tpe, SearchesListsAfterNumbersAreFound) {
  std::vector<Parameter> parameters{{"x", FloatDomain{.min = 0, .max = 1}}};
  for (int i = 0; i < 6; ++i) {
    parameters.push_back({"list" + std::to_string(i),
                          CategoricalDomain{{Text("a"), Text("b"), Text("c"), Text("d")}}});
  }
  const auto loss = [](const Config& config) {  // 0 at x 0.37 and lists of which each has another
    double sum = std::pow(Real(config, "x") - 0.37, 2);
    for (int i = 0; i < 6; ++i) {
      const auto& text = std::get<std::string>(*config.Find("list" + std::to_string(i)));
      sum += 0.1 * ((text[0] - 'a' + i) % 4);
    }
    return sum;
  };
  int found = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Tpe tpe(SpecOf(parameters, seed));
    found += BestOf(tpe, 120, loss) < 0.01;
  }
  EXPECT_GE(found, 18);
}

// The function continues to fall where trials fail.
TEST(Tpe, MostTrialsStayOutOfARegionWhereAllFail) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Tpe tpe(SpecOf(searchers::Plane(), seed));
    int trials = 0;
    int failed = 0;
    BestOf(tpe, 100, [&](const Config& config) {
      const bool fails = Real(config, "x") > 1;
      if (++trials > 50) failed += fails;
      return fails ? std::numeric_limits<double>::quiet_NaN() : Bowl(config);
    });
    EXPECT_LT(failed, 30) << seed;  // of 50
  }
}

// After many failures, the first result is good, however bad its value is.
TEST(Tpe, RecoversFromAStartWhereAllTrialsFail) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Tpe tpe(Plane(seed));
    uint32_t trials = 0;
    const double least = BestOf(tpe, 40 + 60, [&](const Config& config) {
      return trials++ < 40 ? std::numeric_limits<double>::quiet_NaN() : Loss(config);
    });
    EXPECT_LT(least, 0.05) << seed;
  }
}

TEST(Tpe, ParallelProposalsDiffer) {
  Tpe tpe(Plane());
  BestOf(tpe, 30, Loss);
  std::set<std::pair<double, double>> places;  // ends of ranges come more than once
  for (uint32_t i = 30; i < 62; ++i) {
    const Config config = std::get<Proposed>(tpe.Suggest(ProposalNumber(i))).config;
    tpe.Observe({EventSeq(1000 + i), Time{0},
                 TrialCreated{.trial = {SweepId(1), TrialNumber(i)}, .config = config}});
    places.emplace(Real(config, "x"), Real(config, "lr"));
  }
  EXPECT_EQ(places.size(), 32u);
}

// The distance between proposals after the same results, while this number of trials runs.
double Spread(uint32_t running) {
  Tpe tpe(Plane());
  BestOf(tpe, 30, Loss);
  double sum = 0;
  double squares = 0;
  for (uint32_t i = 30; i < 30 + running; ++i) {
    tpe.Observe({EventSeq(1000 + i), Time{0},
                 TrialCreated{.trial = {SweepId(1), TrialNumber(i)}, .config = Ask(tpe, i)}});
  }
  constexpr uint32_t kProposals = 200;
  for (uint32_t i = 0; i < kProposals; ++i) {
    const double x = Real(Ask(tpe, 100 + i), "x");
    sum += x;
    squares += x * x;
  }
  return std::sqrt(squares / kProposals - std::pow(sum / kProposals, 2));
}

TEST(Tpe, ManyRunningTrialsKeepProposalsNearTheMiddle) { EXPECT_LT(Spread(31), Spread(2) / 2); }

// There are few rounds of many trials, so spreading out would not be enough.
TEST(Tpe, IsBetterThanRandomSearchWithManyWorkers) {
  constexpr uint32_t kWorkers = 20;
  double total = 0;
  double by_chance = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Tpe tpe(Plane(seed));
    History history(tpe);
    double best = std::numeric_limits<double>::infinity();
    std::vector<double> losses;
    for (uint32_t i = 0; i < 80 + kWorkers; ++i) {
      if (i >= kWorkers) {
        history.Report(i - kWorkers, {{"loss", losses[i - kWorkers]}});
        history.End(i - kWorkers);
      }
      if (i >= 80) continue;
      const Config config = std::get<Proposed>(tpe.Suggest(ProposalNumber(i))).config;
      losses.push_back(Loss(config));
      best = std::min(best, losses.back());
      history.Create(config);
    }
    Random random(Plane().space, seed);
    total += std::log(best);
    by_chance += std::log(BestOf(random, 80, Loss));
  }
  EXPECT_LT(total, by_chance - 20 * std::log(10));  // a tenth in the geometric mean
}

TEST(Tpe, ASpaceWithOneConfigurationGivesOneTrial) {
  Tpe tpe(SpecOf({{"a", ConstantDomain{true}}}));
  History history(tpe);
  history.Done(std::get<Proposed>(tpe.Suggest(ProposalNumber(0))).config, 1);
  EXPECT_TRUE(std::holds_alternative<Exhausted>(tpe.Suggest(ProposalNumber(1))));
}

TEST(Tpe, LearnsEachBranchOfAConditionalSpace) {
  const SweepSpec spec = SpecOf({{"kind", CategoricalDomain{{Text("a"), Text("b"), Text("c")}}},
                                 {"u", FloatDomain{.min = 0, .max = 1}, {{"kind", {Text("b")}}}},
                                 {"v", FloatDomain{.min = 0, .max = 1}, {{"kind", {Text("c")}}}}});
  const auto loss = [](const Config& config) {  // 0 at kind b, u 0.7
    if (*config.Find("kind") == Text("a")) return 1.0;
    if (*config.Find("kind") == Text("b")) return std::abs(Real(config, "u") - 0.7);
    return 0.5 + Real(config, "v");
  };
  Tpe tpe(spec);
  History history(tpe);
  int near = 0;
  for (uint32_t i = 0; i < 24; ++i) {
    const Config config = std::get<Proposed>(tpe.Suggest(ProposalNumber(i))).config;
    history.Done(config, loss(config));
    near += loss(config) < 0.2;
  }
  EXPECT_GE(near, 10);  // by chance 3
}

// A point in the right branch is worse than the best of the wrong branch unless it is near the
// optimum.
TEST(Tpe, LeavesAWrongBranchWhenItFindsNothingNew) {
  std::vector<Parameter> parameters{{"kind", CategoricalDomain{{Text("right"), Text("wrong")}}}};
  for (const char* kind : {"right", "wrong"}) {
    for (const char* axis : {"u", "v"}) {
      parameters.push_back({std::string(axis) + "_" + kind,
                            FloatDomain{.min = 0, .max = 1},
                            {{"kind", {Text(kind)}}}});
    }
  }
  const auto loss = [](const Config& config) {
    const bool right = *config.Find("kind") == Text("right");
    const std::string kind = right ? "_right" : "_wrong";
    const double u = Real(config, "u" + kind) - 0.7;
    const double v = Real(config, "v" + kind) - 0.2;
    return right ? 30 * (u * u + v * v) : 0.3 + u * u + v * v;
  };
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Tpe tpe(SpecOf(parameters, seed));
    History history(tpe);
    double best = 1;
    int said = 0;
    for (uint32_t i = 0; i < 100; ++i) {
      const Suggestion suggestion = tpe.Suggest(ProposalNumber(i));
      const auto& proposed = std::get<Proposed>(suggestion);
      said += proposed.rationale.rule == "fork";
      const double now = loss(proposed.config);
      best = std::min(best, now);
      history.Done(proposed.config, now);
    }
    EXPECT_LT(best, 1e-3) << "seed " << seed;
    EXPECT_GT(said, 0);
  }
}

// The loss falls towards a corner.
TEST(Tpe, TriesACornerOnce) {
  Tpe tpe(Plane());
  History history(tpe);
  std::set<std::pair<double, double>> tried;
  for (uint32_t i = 0; i < 60; ++i) {
    const Config config = std::get<Proposed>(tpe.Suggest(ProposalNumber(i))).config;
    const double x = Real(config, "x");
    const double lr = Real(config, "lr");
    EXPECT_TRUE(tried.emplace(x, lr).second) << i;
    history.Done(config, x + std::log(lr));
  }
}

TEST(Tpe, AvoidsFailedTrials) {
  Tpe tpe(SpecOf({{"x", FloatDomain{.min = 0, .max = 1}}}));
  History history(tpe);
  int failures = 0;
  for (uint32_t i = 0; i < 80; ++i) {
    const Config config = std::get<Proposed>(tpe.Suggest(ProposalNumber(i))).config;
    const uint32_t trial = history.Create(config);
    const double x = Real(config, "x");
    if (x > 0.5) {  // only the failures differ
      history.Report(trial, {{"loss", std::nan("")}});
      history.End(trial, i % 2 == 0 ? TrialState::kFailed : TrialState::kCompleted);
      if (i >= 20) ++failures;
    } else {
      history.Report(trial, {{"loss", 1.0}});
      history.End(trial);
    }
  }
  EXPECT_LE(failures, 20);  // of 60; random search has 30
}

TEST(Tpe, ProposesEvenIfAllTrialsFail) {
  Tpe tpe(Plane());
  History history(tpe);
  for (uint32_t i = 0; i < 30; ++i) {
    const Config config = std::get<Proposed>(tpe.Suggest(ProposalNumber(i))).config;
    history.End(history.Create(config), TrialState::kFailed);
  }
}

TEST(Tpe, AcceptsTenThousandEqualTrialsAndExtremeValues) {
  Tpe tpe(SpecOf({{"x", FloatDomain{.min = 1e-12, .max = 1, .scale = Scale::kLog}},
                  {"y", FloatDomain{.min = -1e300, .max = 1e300 / 2}},
                  {"one", FloatDomain{.min = 3, .max = 3}}}));
  History history(tpe);
  const Config config = std::get<Proposed>(tpe.Suggest(ProposalNumber(0))).config;
  for (int i = 0; i < 10'000; ++i) history.Done(config, 1e300);
  for (const double loss : {-1e300, 1e-300, 0.0, -0.0, 1e300}) history.Done(config, loss);
  const Config next = std::get<Proposed>(tpe.Suggest(ProposalNumber(10'001))).config;
  EXPECT_EQ(Real(next, "one"), 3);
}

TEST(Tpe, AReopenedTrialCountsAgainOnceItHasEnded) {
  Tpe tpe(Plane());
  BestOf(tpe, 30, Loss);
  Tpe other(Plane());
  BestOf(other, 30, Loss);
  const TrialId id(SweepId(1), TrialNumber(0));
  other.Observe({EventSeq(500), Time{0}, TrialReopened{.record = {.id = id}}});
  other.Observe({EventSeq(501), Time{0}, TrialEnded{id, TrialState::kCompleted, ""}});
  EXPECT_EQ(tpe.Suggest(ProposalNumber(30)), other.Suggest(ProposalNumber(30)));
}

TEST(Tpe, AnEditAppliesToTheNextProposal) {
  Tpe tpe(Plane());
  BestOf(tpe, 30, Loss);
  SweepSpec spec = Plane();
  spec.space = SearchSpace({{"x", FloatDomain{.min = 3, .max = 5}},
                            {"lr", FloatDomain{.min = 1e-6, .max = 1, .scale = Scale::kLog}}});
  tpe.Adapt(spec);
  for (uint32_t i = 30; i < 50; ++i) {
    EXPECT_GE(Real(std::get<Proposed>(tpe.Suggest(ProposalNumber(i))).config, "x"), 3);
  }
}

// The objectives are best at opposite ends of u, and both at v = 0.3.
TEST(Tpe, FindsTheWholeFrontOfTwoMetrics) {
  SweepSpec spec =
      SpecOf({{"u", FloatDomain{.min = 0, .max = 1}}, {"v", FloatDomain{.min = 0, .max = 1}}});
  spec.objectives = {Minimise("loss"), Maximise("speed")};
  Tpe tpe(spec);
  History history(tpe);
  int close = 0;
  int low = 0;
  int high = 0;
  for (uint32_t i = 0; i < 120; ++i) {
    const Config config = std::get<Proposed>(tpe.Suggest(ProposalNumber(i))).config;
    const double off = std::abs(Real(config, "v") - 0.3);
    const uint32_t trial = history.Create(config);
    history.Report(trial, {{"loss", Real(config, "u") + off}, {"speed", Real(config, "u") - off}});
    history.End(trial);
    if (i < 40) continue;
    close += off < 0.1;
    low += Real(config, "u") < 0.35;
    high += Real(config, "u") > 0.65;
  }
  EXPECT_GE(close, 40);  // of 80; by chance 16
  EXPECT_GE(low, 10);
  EXPECT_GE(high, 10);
}

TEST(Tpe, OnlyAnInfiniteSpaceNeedsALimit) {
  SweepSpec spec = Plane();
  spec.program.command = {"train"};
  EXPECT_TRUE(TpeEntry().make(spec).error().message.starts_with("stop: "));
  spec.space = SearchSpace({{"a", IntDomain{.min = 0, .max = 3}}});
  EXPECT_TRUE(TpeEntry().make(spec).ok());
}

}  // namespace
}  // namespace attune::searchers
