#include "searchers/bohb.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "searchers/random.h"
#include "tests/unit/searchers/problems.h"

namespace attune::searchers {
namespace {

using ::testing::HasSubstr;

SweepSpec Line(double random_fraction = 0, uint64_t seed = 1) {
  SweepSpec spec = SpecOf(BohbEntry(), {{"x", FloatDomain{.min = 0, .max = 1}}}, seed);
  spec.searcher.options["random_fraction"] = random_fraction;
  return spec;
}

Config ConfigAt(double x) { return Config({{"x", x}}); }

// Creates trials at even distances, which pause at step 1 with this loss.
template <class Loss>
void Pause(History<Bohb>& history, int trials, Loss loss) {
  for (int i = 0; i < trials; ++i) {
    const double x = (i + 0.5) / trials;
    const uint32_t trial = history.Create(ConfigAt(x));
    history.Report(trial, {{"loss", loss(x)}}, 1);
    history.Pause(trial);
  }
}

int ProposalsNear(const Bohb& bohb, double x, uint32_t from) {
  int near = 0;
  for (uint32_t i = from; i < from + 30; ++i) near += std::abs(Real(Ask(bohb, i), "x") - x) < 0.2;
  return near;
}

// Three trials, one parameter: three results make a step deep enough.
TEST(Bohb, LearnsFromTheDeepestStepThatEnoughTrialsReached) {
  Bohb bohb(Line());
  History history(bohb);
  Pause(history, 12, [](double x) { return std::abs(x - 0.2); });
  EXPECT_GE(ProposalsNear(bohb, 0.2, 100), 20);

  // At step 9 the loss is another function. Two trials there are not enough for a model.
  const auto promote = [&](uint32_t trial, double loss) {
    history.Tell(TrialPromoted{.trial = history.Id(trial)});
    history.Report(trial, {{"loss", loss}}, 9);
    history.Pause(trial);
  };
  promote(0, -1);
  promote(1, -2);
  EXPECT_GE(ProposalsNear(bohb, 0.2, 100), 20);
  for (const uint32_t trial : {4, 6, 8, 9, 10, 11})
    promote(trial, -3 + std::abs(trial / 12.0 - 0.8));
  EXPECT_GE(ProposalsNear(bohb, 0.8, 200), 20);
  const Suggestion suggestion = bohb.Suggest(ProposalNumber(300));
  EXPECT_THAT(std::get<Proposed>(suggestion).rationale.text, HasSubstr("model of 12 results"));
}

// Otherwise the model would ignore early stops, and propose more of such trials.
TEST(Bohb, TrialsThatStoppedEarlierRankBehind) {
  Bohb bohb(Line());
  History history(bohb);
  for (const double x : {0.4, 0.5, 0.6}) history.Done(ConfigAt(x), std::abs(x - 0.5));
  for (int i = 0; i < 12; ++i) {
    const uint32_t trial = history.Create(ConfigAt(0.8 + i / 60.0));
    history.Report(trial, {{"loss", 9}}, 1);
    history.Pause(trial);
  }
  EXPECT_LE(ProposalsNear(bohb, 1, 100), 3);
}

TEST(Bohb, AResultIsTheBestValueUpToTheStep) {
  Bohb bohb(Line());
  History history(bohb);
  Pause(history, 12, [](double x) { return std::abs(x - 0.2); });
  // Two trials become the best at a later step, which does not count at step 1.
  for (const uint32_t trial : {10, 11}) {
    history.Tell(TrialPromoted{.trial = history.Id(trial)});
    history.Report(trial, {{"loss", -5.0}}, 9);
    history.Pause(trial);
  }
  EXPECT_GE(ProposalsNear(bohb, 0.2, 100), 20);
}

TEST(Bohb, AResumedTrialKeepsItsResult) {
  Bohb bohb(Line());
  History history(bohb);
  Pause(history, 12, [](double x) { return std::abs(x - 0.2); });
  for (uint32_t trial = 0; trial < 12; ++trial)
    history.Tell(TrialPromoted{.trial = history.Id(trial)});
  EXPECT_GE(ProposalsNear(bohb, 0.2, 100), 20);
}

TEST(Bohb, FailuresAreTheWorstAtEveryStep) {
  Bohb bohb(Line());
  History history(bohb);
  Pause(history, 6, [](double x) { return std::abs(x - 0.5); });
  for (int i = 0; i < 20; ++i) {
    const uint32_t trial = history.Create(ConfigAt(0.9 + i * 0.001));
    history.Report(trial, {{"loss", std::nan("")}});
    history.End(trial, TrialState::kFailed);
  }
  EXPECT_LE(ProposalsNear(bohb, 1, 100), 3);
}

TEST(Bohb, DrawsSomeProposalsAtRandom) {
  Bohb bohb(Line(0.33));
  History history(bohb);
  Pause(history, 12, [](double x) { return x; });
  int random = 0;
  for (uint32_t i = 0; i < 300; ++i) {
    random += std::get<Proposed>(bohb.Suggest(ProposalNumber(i))).rationale.rule == "random";
  }
  EXPECT_GT(random, 70);
  EXPECT_LT(random, 130);
}

TEST(Bohb, FindsBetterThanRandomSearchDoes) {
  int wins = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const SweepSpec spec = SpecOf(BohbEntry(), Plane(), seed);
    Bohb bohb(spec);
    Random random(spec.space, seed);
    wins += BestOf(bohb, 60, Bowl) < BestOf(random, 60, Bowl);
  }
  EXPECT_GE(wins, 17);
}

// Random proposals must not replace the best trials of earlier sweeps.
TEST(Bohb, AlwaysProposesTheBestOfAnEarlierSweep) {
  SweepSpec spec = Line(1);
  spec.warm_start = {SweepId(3)};
  Bohb bohb(spec);
  const WarmStart start{.from = SweepId(3),
                        .results = 1,
                        .taken = {{{SweepId(3), TrialNumber(4)}, ConfigAt(0.625), 0.5}}};
  History history(bohb);
  history.Tell(SweepCreated{.sweep = SweepId(1), .warm_start = {{start}}});
  Pause(history, 12, [](double x) { return x; });
  EXPECT_EQ(Ask(bohb, 0), ConfigAt(0.625));
  EXPECT_EQ(std::get<Proposed>(bohb.Suggest(ProposalNumber(1))).rationale.rule, "random");
}

// A reopened trial may report a better value than before.
TEST(Bohb, RanksAReopenedTrialByItsNewBest) {
  const SweepSpec spec = Line();
  Bohb bohb(spec);
  History history(bohb);
  for (int i = 0; i < 10; ++i) history.Done(ConfigAt((i + 0.5) / 10), i);
  history.Tell(TrialReopened{.record = {.id = history.Id(9)}});
  history.Report(9, {{"loss", -5}}, 3);
  ArchiveWriter bytes;
  bohb.Save(bytes);
  const std::string saved = bytes.Take();
  Bohb restored(spec);
  ArchiveReader archive(saved);
  restored.Load(archive);
  for (uint32_t i = 100; i < 110; ++i)
    EXPECT_EQ(restored.Suggest(ProposalNumber(i)), bohb.Suggest(ProposalNumber(i)));
  EXPECT_GE(ProposalsNear(bohb, 0.95, 100), 10);
}

// A trial that resumes from an earlier checkpoint repeats steps.
TEST(Bohb, ABetterValueAtARepeatedStepCountsFromThere) {
  Bohb bohb(Line());
  History history(bohb);
  Pause(history, 12, [](double x) { return std::abs(x - 0.2); });
  const uint32_t trial = history.Create(ConfigAt(0.8));
  history.Report(trial, {{"loss", 3}}, 2);
  history.Report(trial, {{"loss", 2}}, 5);
  history.Report(trial, {{"loss", -9}}, 1);
  history.Pause(trial);
  EXPECT_GE(ProposalsNear(bohb, 0.8, 100), 10);
}

// Too few trials have reached any step, but the failures are enough for a model.
TEST(Bohb, APromotedTrialRanksBeforeFailuresWithoutAFidelity) {
  Bohb bohb(Line());
  History history(bohb);
  Pause(history, 2, [](double x) { return x; });  // at 0.25 and 0.75
  for (int i = 0; i < 3; ++i) history.End(history.Create(ConfigAt(0.5)), TrialState::kFailed);
  EXPECT_GE(ProposalsNear(bohb, 0.15, 100), 20);
  history.Tell(TrialPromoted{.trial = history.Id(0)});
  EXPECT_GE(ProposalsNear(bohb, 0.15, 100), 20);
  EXPECT_THAT(std::get<Proposed>(bohb.Suggest(ProposalNumber(100))).rationale.text,
              HasSubstr("model of 5 results"));
}

// The record reports no change of a trial outside the ranges.
TEST(Bohb, LearnsTheOutcomeOfAnExcludedTrialWhenRangesWiden) {
  const SweepSpec wide = Line();
  SweepSpec narrow = wide;
  narrow.space = SearchSpace({{"x", FloatDomain{.min = 0, .max = 0.5}}});
  Bohb bohb(wide);
  History history(bohb);
  Pause(history, 12, [](double x) { return std::abs(x - 0.9); });
  for (const uint32_t trial : {9, 10, 11}) history.Tell(TrialPromoted{.trial = history.Id(trial)});
  const uint32_t running = history.Create(ConfigAt(0.65));
  history.Report(running, {{"loss", -1}});

  bohb.Adapt(narrow);
  for (const uint32_t trial : {9, 10, 11}) history.End(trial, TrialState::kFailed);
  history.Pause(running);
  bohb.Adapt(wide);
  EXPECT_LE(ProposalsNear(bohb, 1, 100), 3) << "they have failed";
  EXPECT_GE(ProposalsNear(bohb, 0.65, 100), 20) << "the best of all";
}

// Golden: other values mean that running sweeps would get other proposals.
TEST(Bohb, TheBitsOfAProposalAreGolden) {
  Bohb bohb(SpecOf(BohbEntry(), Plane(), 7));
  BestOf(bohb, 40, Bowl);
  const Config config = Ask(bohb, 40);
  EXPECT_EQ(FormatReal(Real(config, "x")) + " " + FormatReal(Real(config, "y")),
            "0.811679206206966 -1.4490995890164324");
}

}  // namespace
}  // namespace attune::searchers
