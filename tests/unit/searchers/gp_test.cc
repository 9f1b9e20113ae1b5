#include "searchers/gp.h"

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "searchers/random.h"
#include "tests/unit/searchers/problems.h"

namespace attune::searchers {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

SweepSpec SpecOf(std::vector<Parameter> parameters, uint64_t seed = 1) {
  return searchers::SpecOf(GpEntry(), std::move(parameters), seed);
}

SweepSpec Plane(uint64_t seed = 1) {
  return SpecOf({{"x", FloatDomain{.min = -5, .max = 5}},
                 {"lr", FloatDomain{.min = 1e-12, .max = 1, .scale = Scale::kLog}}},
                seed);
}

// 0 at x = 2, lr = 1e-4.
double Loss(const Config& config) {
  return std::pow((Real(config, "x") - 2) / 10, 2) +
         std::pow((std::log10(Real(config, "lr")) + 4) / 12, 2);
}

TEST(Gp, FindsTheBestOfASmoothLossToFourDigitsInThirtyTrials) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Gp gp(Plane(seed));
    Random random(Plane().space, seed);
    EXPECT_LT(BestOf(gp, 30, Loss), 1e-4 * BestOf(random, 1, Loss)) << seed;
  }
}

// Golden: other values mean that running sweeps would get other proposals.
TEST(Gp, TheBitsOfAProposalAreGolden) {
  Gp gp(SpecOf({{"x", FloatDomain{.min = -5, .max = 5}},
                {"lr", FloatDomain{.min = 1e-12, .max = 1, .scale = Scale::kLog}},
                {"kind", CategoricalDomain{{int64_t{1}, int64_t{2}, int64_t{3}}}}},
               7));
  BestOf(gp, 60, [](const Config& config) {
    return std::cos(3 * Real(config, "x")) + Loss(config) +
           static_cast<double>(std::get<int64_t>(*config.Find("kind")));
  });
  const Config config = Ask(gp, 60);
  EXPECT_EQ(FormatReal(Real(config, "x")) + " " + FormatReal(Real(config, "lr")),
            "1.0500399189890377 0.00010083651835572444");
}

TEST(Gp, TheBitsOfAProposalForSeveralMetricsAreGolden) {
  SweepSpec spec = Plane(7);
  spec.objectives.push_back(Minimise("size"));
  spec.objectives.push_back(Maximise("speed"));
  Gp gp(spec);
  History history(gp);
  for (uint32_t i = 0; i < 24; ++i) {
    const Config config = Ask(gp, i);
    const uint32_t trial = history.Create(config);
    const double x = Real(config, "x");
    history.Report(trial, {{"loss", Loss(config)}, {"size", x * x}, {"speed", std::cos(x)}});
    history.End(trial, TrialState::kCompleted);
  }
  const Config config = Ask(gp, 24);
  EXPECT_EQ(FormatReal(Real(config, "x")) + " " + FormatReal(Real(config, "lr")),
            "1.368438140518025 9.998331641597232e-05");
}

// Counts proposals of the model, and proposals below 0.3, among 30. The loss is noisy and least at
// an edge, so the model would propose this point again and again.
struct Proposals {
  int from_model = 0;
  int near = 0;
};
Proposals ProposalsForALossAtAnEdge(TrialState first_one_ends) {
  Gp gp(SpecOf({{"x", FloatDomain{.min = 0, .max = 1}}}));
  RandomStream noise(7, ProposalNumber(0), "test");
  History history(gp);
  Proposals proposals;
  for (uint32_t i = 0; i < 30; ++i) {
    const Suggestion suggestion = gp.Suggest(ProposalNumber(i));
    const auto& proposed = std::get<Proposed>(suggestion);
    const double x = Real(proposed.config, "x");
    if (proposed.rationale.rule == "expected_improvement") {
      ++proposals.from_model;
      proposals.near += x < 0.3;
    }
    const uint32_t trial = history.Create(proposed.config);
    history.Report(trial, {{"loss", x + noise.Uniform()}});
    history.End(trial, i == 0 ? first_one_ends : TrialState::kCompleted);
  }
  return proposals;
}

TEST(Gp, ProposesTheNextBestPointIfTheBestWasTried) {
  const Proposals proposals = ProposalsForALossAtAnEdge(TrialState::kCompleted);
  EXPECT_EQ(proposals.from_model, 25);  // without the first five
  EXPECT_GE(proposals.near, 16);        // at random it would be 7 or 8
}

TEST(Gp, ProposesARandomPointIfTheBestWasTriedAndTrialsEndedEarly) {
  EXPECT_LT(ProposalsForALossAtAnEdge(TrialState::kStopped).from_model, 25);
  EXPECT_LT(ProposalsForALossAtAnEdge(TrialState::kFailed).from_model, 25);
}

TEST(Gp, KeepsParallelProposalsApart) {
  Gp gp(Plane());
  BestOf(gp, 12, Loss);
  History history(gp);
  std::vector<Config> out;
  for (uint32_t i = 12; i < 18; ++i) {
    const Config config = Ask(gp, i);
    for (const Config& other : out) {
      const double x = (Real(config, "x") - Real(other, "x")) / 10;
      const double lr = (std::log10(Real(config, "lr")) - std::log10(Real(other, "lr"))) / 12;
      EXPECT_GT(std::hypot(x, lr), 1e-3);
    }
    out.push_back(config);
    gp.Observe({EventSeq(1000 + i), Time{0},
                TrialCreated{.trial = {SweepId(1), TrialNumber(i)}, .config = config}});
  }
}

TEST(Gp, DoesNotDependOnTheOrderInWhichParallelTrialsEnd) {
  std::vector<Config> proposals;
  for (const bool swapped : {false, true}) {
    Gp gp(Plane());
    BestOf(gp, 12, Loss);
    const Config first = Ask(gp, 12);
    const auto tell = [&](const Fact& fact) { gp.Observe({EventSeq(1000), Time{0}, fact}); };
    const auto id = [](uint32_t number) { return TrialId(SweepId(1), TrialNumber(number)); };
    tell(TrialCreated{.trial = id(12), .config = first});
    tell(TrialCreated{.trial = id(13), .config = Config{{"x", 1.0}, {"lr", 1e-3}}});
    for (const uint32_t number : swapped ? std::vector{13u, 12u} : std::vector{12u, 13u}) {
      tell(TrialReported{{id(number), 1}, {Step(1), {{"loss", 0.01 * number}}, Seconds(1)}});
      tell(TrialEnded{id(number), TrialState::kCompleted, ""});
    }
    proposals.push_back(Ask(gp, 14));
  }
  EXPECT_EQ(proposals[0], proposals[1]);
}

TEST(Gp, ProposesAFiniteSpaceWithoutRepeats) {
  Gp gp(SpecOf({{"a", IntDomain{.min = 1, .max = 5}},
                {"b", CategoricalDomain{{true, false, int64_t{3}}}},
                {"c", IntDomain{.min = 0, .max = 3}, {{"b", {true}}}}}));
  History history(gp);
  std::set<std::string> seen;
  for (uint32_t i = 0; i < 100; ++i) {
    const Suggestion suggestion = gp.Suggest(ProposalNumber(i));
    if (std::holds_alternative<Exhausted>(suggestion)) break;
    std::string text;
    for (const auto& [name, value] : std::get<Proposed>(suggestion).config.entries()) {
      text += name + FormatValue(value) + " ";
    }
    EXPECT_TRUE(seen.insert(text).second) << text;
    history.Done(std::get<Proposed>(suggestion).config, static_cast<double>(i % 7));
  }
  EXPECT_EQ(seen.size(), 5u * (4 + 2));
}

TEST(Gp, ASpaceWithOneConfigurationGivesOneTrial) {
  Gp gp(SpecOf({{"a", ConstantDomain{true}}}));
  History history(gp);
  history.Done(Ask(gp, 0), 1);
  EXPECT_TRUE(std::holds_alternative<Exhausted>(gp.Suggest(ProposalNumber(1))));
}

TEST(Gp, LearnsEachBranchOfAConditionalSpace) {
  const auto text = [](const char* of) { return Value(std::string(of)); };
  Gp gp(SpecOf({{"kind", CategoricalDomain{{text("a"), text("b"), text("c")}}},
                {"u", FloatDomain{.min = 0, .max = 1}, {{"kind", {text("b")}}}},
                {"v", FloatDomain{.min = 0, .max = 1}, {{"kind", {text("c")}}}}}));
  const auto loss = [&](const Config& config) {  // 0 at kind b, u 0.7
    if (*config.Find("kind") == text("a")) return 1.0;
    if (*config.Find("kind") == text("b")) return std::pow(Real(config, "u") - 0.7, 2);
    return 0.5 + Real(config, "v");
  };
  EXPECT_LT(BestOf(gp, 30, loss), 1e-5);
}

TEST(Gp, FindsTheBestOfFewSteps) {
  Gp gp(SpecOf({{"n", IntDomain{.min = 1, .max = 10}},
                {"width", IntDomain{.min = 1, .max = 16, .scale = Scale::kLog}},
                {"x", FloatDomain{.min = 0, .max = 1}}}));
  const auto loss = [](const Config& config) {  // 0 at n 8, width 15, x 0.3
    const auto whole = [&](const char* name) {
      return static_cast<double>(std::get<int64_t>(*config.Find(name)));
    };
    return std::pow(whole("n") - 8, 2) + std::pow(whole("width") - 15, 2) / 20 +
           std::pow(Real(config, "x") - 0.3, 2);
  };
  EXPECT_LT(BestOf(gp, 30, loss), 0.01);
}

TEST(Gp, AvoidsRegionsWhereTrialsFail) {
  Gp gp(Plane());
  History history(gp);
  int failed = 0;
  for (uint32_t i = 0; i < 40; ++i) {
    const Config config = Ask(gp, i);
    if (Real(config, "x") < 2.5) {
      history.Done(config, Loss(config));
    } else {
      failed += i >= 20;
      history.End(history.Create(config), TrialState::kFailed);
    }
  }
  EXPECT_LE(failed, 5);
}

TEST(Gp, AvoidsAListedValueThatAlwaysFails) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    Gp gp(SpecOf(
        {{"x", FloatDomain{.min = -5, .max = 5}},
         {"batch", CategoricalDomain{{int64_t{32}, int64_t{64}, int64_t{128}, int64_t{256}}}}},
        seed));
    int failed = 0;
    BestOf(gp, 40, [&](const Config& config) {
      if (std::get<int64_t>(*config.Find("batch")) < 128) return std::pow(Real(config, "x") - 2, 2);
      ++failed;
      return kNaN;
    });
    EXPECT_LE(failed, 8) << seed;
  }
}

TEST(Gp, ToleratesVeryManyChanceFailures) {
  Gp gp(Plane());
  History history(gp);
  Random random(Plane().space, 1);
  for (uint32_t i = 0; i < 480; ++i) {
    const Config config = Ask(random, i);
    if (i % 4 > 0) {
      history.Done(config, Loss(config));
    } else {
      history.End(history.Create(config), TrialState::kFailed);
    }
  }
  EXPECT_LT(Loss(Ask(gp, 480)), 1e-3);
}

TEST(Gp, ToleratesChanceFailures) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    Gp gp(Plane(seed));
    Random random(Plane().space, seed);
    int trial = 0;
    const auto loss = [&](const Config& config) { return ++trial % 4 == 0 ? kNaN : Loss(config); };
    EXPECT_LT(BestOf(gp, 40, loss), 1e-4 * BestOf(random, 1, Loss)) << seed;
  }
}

TEST(Gp, LearnsFromInfeasibleTrials) {
  SweepSpec spec = Plane();
  spec.constraints = {{.metric = "memory", .min = {}, .max = 1.0}};
  Gp gp(spec);
  History history(gp);
  int feasible = 0;
  for (uint32_t i = 0; i < 40; ++i) {
    const Config config = Ask(gp, i);
    const double memory = 6 + Real(config, "x");  // feasible for x below -5 + 0.5
    const uint32_t trial = history.Create(config);
    history.Report(trial, {{"loss", Loss(config)}, {"memory", memory - 0.5}});
    history.End(trial);
    feasible += i >= 20 && memory - 0.5 <= 1;
  }
  EXPECT_GE(feasible, 10);
}

TEST(Gp, LearnsFromUnfinishedTrials) {
  Gp gp(Plane());
  History history(gp);
  int learned = 0;  // a sixteenth of random ones would be good
  for (uint32_t i = 0; i < 40; ++i) {
    const Config config = Ask(gp, i);
    const uint32_t trial = history.Create(config);
    const bool good = Loss(config) < 0.02;
    learned += i >= 20 && good;
    for (int64_t step = 1; step <= (good ? 9 : 1); ++step) {
      history.Report(trial, {{"loss", Loss(config)}}, step);
    }
    history.End(trial, TrialState::kStopped);
  }
  EXPECT_GE(learned, 10);
}

TEST(Gp, IgnoresValuesThatAreNotFinite) {
  constexpr double kLosses[] = {
      1e300, -1e300, 1e-300, 0, kNaN, 5, 5, -kNaN, std::numeric_limits<double>::infinity()};
  Gp gp(Plane());
  History history(gp);
  for (uint32_t i = 0; i < 60; ++i) {
    const Config config = Ask(gp, i);
    EXPECT_TRUE(std::isfinite(Real(config, "x")));
    history.Done(config, kLosses[i % std::size(kLosses)]);
  }
}

TEST(Gp, AcceptsTenThousandTrialsAtOnePoint) {
  Gp gp(Plane());
  History history(gp);
  for (int i = 0; i < 10'000; ++i) history.Done(Config{{"x", 1.0}, {"lr", 1e-3}}, 3);
  const Config first = Ask(gp, 0);
  EXPECT_NE(first, (Config{{"x", 1.0}, {"lr", 1e-3}}));
  history.Done(first, 2);
  EXPECT_NE(Ask(gp, 1), first);
}

TEST(Gp, SearchesManyParametersNearTheBest) {
  std::vector<Parameter> parameters;
  for (int i = 0; i < 30; ++i) {
    parameters.push_back({"x" + std::to_string(i), FloatDomain{.min = 0, .max = 1}, {}});
  }
  const auto loss = [](const Config& config) {
    double sum = 0;
    for (const auto& [name, value] : config.entries()) {
      sum += std::pow(std::get<double>(value) - 0.3, 2);
    }
    return sum;
  };
  Gp gp(SpecOf(parameters));
  Random random(SearchSpace(parameters), 1);
  EXPECT_LT(BestOf(gp, 50, loss), 0.5 * BestOf(random, 50, loss));
}

// Two bowls with minima at x = -3 and x = 3. The front lies between them, at lr = 1e-4.
SweepSpec TwoBowls() {
  SweepSpec spec = Plane();
  spec.objectives.push_back(Minimise("size"));
  return spec;
}

Metrics OfTwoBowls(const Config& config) {
  const double lr = std::pow((std::log10(Real(config, "lr")) + 4) / 4, 2);
  return {{"loss", std::pow(Real(config, "x") + 3, 2) + lr},
          {"size", std::pow(Real(config, "x") - 3, 2) + lr}};
}

// Runs trials of which every seventh fails. Returns the configurations of the others.
std::vector<Config> TryConfigs(Gp& gp, uint32_t trials) {
  History history(gp);
  std::vector<Config> tried;
  for (uint32_t i = 0; i < trials; ++i) {
    const Config config = Ask(gp, i);
    const uint32_t trial = history.Create(config, ProposalNumber(i));
    if (i % 7 == 6) {
      history.End(trial, TrialState::kFailed);
      continue;
    }
    history.Report(trial, OfTwoBowls(config));
    history.End(trial);
    tried.push_back(config);
  }
  return tried;
}

TEST(Gp, FindsTheWholeFrontOfTwoMetrics) {
  Gp gp(TwoBowls());
  const std::vector<Config> tried = TryConfigs(gp, 50);
  std::set<int> places;  // of the front, in sixths of it
  for (const Config& config : tried) {
    if (std::abs(std::log10(Real(config, "lr")) + 4) > 0.5) continue;
    if (std::abs(Real(config, "x")) < 3) {
      places.insert(static_cast<int>(std::floor(Real(config, "x"))));
    }
  }
  EXPECT_EQ(places, (std::set<int>{-3, -2, -1, 0, 1, 2}));
}

TEST(Gp, ExplainsTheExpectedHypervolumeOfTwoMetrics) {
  Gp gp(TwoBowls());
  TryConfigs(gp, 20);
  const auto suggestion = gp.Suggest(ProposalNumber(20));
  EXPECT_THAT(std::get<Proposed>(suggestion).rationale.text, ::testing::HasSubstr("hypervolume"));
}

TEST(Gp, AcceptsEqualMetricsAndTrialsThatAllFail) {
  for (const bool fail : {true, false}) {
    Gp gp(TwoBowls());
    History history(gp);
    for (uint32_t i = 0; i < 20; ++i) {
      const uint32_t trial = history.Create(Ask(gp, i), ProposalNumber(i));
      if (!fail) history.Report(trial, {{"loss", 1}, {"size", 1e300}});
      history.End(trial, fail ? TrialState::kFailed : TrialState::kCompleted);
    }
    Ask(gp, 20);
  }
}

TEST(Gp, RequiresALimit) {
  SweepSpec spec = Plane();
  spec.program.command = {"train"};
  EXPECT_FALSE(GpEntry().make(spec).ok());
}

}  // namespace
}  // namespace attune::searchers
