#include "searchers/auto.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "searchers/gp.h"
#include "searchers/tpe.h"
#include "tests/unit/searchers/problems.h"

namespace attune::searchers {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::StartsWith;

SweepSpec Named(const std::string& name, std::vector<Parameter> parameters,
                std::vector<Objective> objectives = {Minimise("loss")}) {
  return {.objectives = std::move(objectives),
          .space = SearchSpace(std::move(parameters)),
          .searcher = {.name = name},
          .seed = 3};
}

std::vector<Parameter> Line() { return {{"x", FloatDomain{.min = 0, .max = 1}}}; }

template <class S>
S Made(const Entry<Searcher>& entry) {
  return S(SpecOf(entry, Line(), 3));
}

// Ends this number of trials, each at another point.
void Tell(Searcher& searcher, uint32_t trials, TrialState as = TrialState::kCompleted) {
  History history(searcher);
  RandomStream random(1, TrialNumber(0), "test");
  for (uint32_t i = 0; i < trials; ++i) {
    const double x = random.Uniform();
    history.Create(Config{{"x", x}});
    history.Report(i, {{"loss", (x - 0.3) * (x - 0.3)}});
    history.End(i, as);
  }
}

Proposed ProposedBy(const Searcher& searcher, uint32_t proposal = 5'000) {
  return std::get<Proposed>(searcher.Suggest(ProposalNumber(proposal)));
}

std::vector<std::vector<std::string>> Names(const SweepSpec& spec) {
  std::vector<std::vector<std::string>> names;
  for (const Auto::Stage& stage : Auto::StagesFor(spec)) names.push_back(stage.searchers);
  return names;
}

// A stage of one searcher, and of two that take turns.
auto Alone(const std::string& name) { return ElementsAre(name); }
auto InTurns(const std::string& first, const std::string& second) {
  return ElementsAre(first, second);
}

TEST(Auto, ChoosesStagesFromTheSweep) {
  EXPECT_THAT(Names(Named("auto", Line())), ElementsAre(InTurns("gp", "tpe"), Alone("tpe")));
  EXPECT_THAT(Names(Named("auto", Line(), {Minimise("loss"), Minimise("latency")})),
              ElementsAre(Alone("gp"), Alone("tpe"), Alone("nsga2")));
  EXPECT_THAT(
      Names(Named("auto", Line(), {Minimise("a"), Minimise("b"), Minimise("c"), Minimise("d")})),
      ElementsAre(Alone("tpe"), Alone("nsga2")));
  std::vector<Parameter> many;
  for (int i = 0; i < 61; ++i) {
    many.push_back({"x" + std::to_string(i), FloatDomain{.min = 0, .max = 1}});
  }
  SweepSpec spec = Named("auto", many);
  EXPECT_THAT(Names(spec), ElementsAre(Alone("tpe")));
  spec.scheduler.name = "asha";
  EXPECT_THAT(Names(spec), ElementsAre(Alone("tpe"), Alone("bohb")));
}

TEST(Auto, UsesBohbWithSchedulersThatEndTrialsEarly) {
  SweepSpec spec = Named("auto", Line());
  for (const char* scheduler : {"fifo", "pbt"}) {
    spec.scheduler.name = scheduler;
    EXPECT_THAT(Names(spec), ElementsAre(InTurns("gp", "tpe"), Alone("tpe"))) << scheduler;
  }
  for (const char* scheduler : {"asha", "hyperband", "median"}) {
    spec.scheduler.name = scheduler;
    EXPECT_THAT(Names(spec), ElementsAre(Alone("gp"), Alone("bohb"))) << scheduler;
  }
  spec.objectives = {Minimise("loss"), Minimise("latency")};
  EXPECT_THAT(Names(spec), ElementsAre(Alone("gp"), Alone("tpe"), Alone("nsga2")));
}

TEST(Auto, APauseAtARungIsAResult) {
  SweepSpec spec = Named("auto", Line());
  spec.scheduler.name = "asha";
  Auto chosen(spec);
  History history(chosen);
  for (uint32_t i = 0; i < 100; ++i) {
    EXPECT_THAT(ProposedBy(chosen).rationale.text, StartsWith("gp, "));
    history.Create(Config{{"x", (i + 0.5) / 100}});
    history.Report(i, {{"loss", 1.0 / (i + 1)}});
    history.Pause(i);
  }
  EXPECT_THAT(ProposedBy(chosen).rationale.text, StartsWith("bohb, for 100 results "));
}

TEST(Auto, ProposesAndNamesTheSearcherWhoseTurnItIs) {
  EXPECT_TRUE(Auto(Named("auto", Line())).NeedsThread());
  const auto expect_turn = [](const std::string& name, Proposed proposed, const Proposed& alone) {
    EXPECT_THAT(proposed.rationale.text,
                AllOf(StartsWith(name + "'s turn, "), EndsWith(": " + alone.rationale.text)));
    proposed.rationale.text = alone.rationale.text;
    EXPECT_EQ(proposed, alone);
  };
  for (const uint32_t trials : {0u, 30u}) {
    Auto chosen(Named("auto", Line()));
    Tell(chosen, trials);
    Gp gp = Made<Gp>(GpEntry());
    Tell(gp, trials);
    Tpe tpe = Made<Tpe>(TpeEntry());
    Tell(tpe, trials);
    expect_turn("gp", ProposedBy(chosen, 40), ProposedBy(gp, 40));
    expect_turn("tpe", ProposedBy(chosen, 41), ProposedBy(tpe, 41));
  }
}

TEST(Auto, ASingleSearcherHasNoTurns) {
  SweepSpec spec = Named("auto", Line());
  spec.scheduler.name = "asha";
  const Auto chosen(spec);
  EXPECT_THAT(ProposedBy(chosen, 0).rationale.text, StartsWith("gp, "));
  EXPECT_THAT(ProposedBy(chosen, 1).rationale.text, StartsWith("gp, "));
}

TEST(Auto, SearchersInTurnsShareTheFirstSequence) {
  const Auto chosen(Named("auto", Line()));
  const Gp gp = Made<Gp>(GpEntry());
  for (uint32_t i = 0; i < 5; ++i)
    EXPECT_EQ(ProposedBy(chosen, i).config, ProposedBy(gp, i).config) << i;
}

TEST(Auto, TheNextSearcherHasObservedEverything) {
  Auto chosen(Named("auto", Line()));
  Tell(chosen, 1'000);
  Tpe tpe = Made<Tpe>(TpeEntry());
  Tell(tpe, 1'000);
  EXPECT_EQ(ProposedBy(chosen).config, ProposedBy(tpe).config);
  EXPECT_THAT(
      ProposedBy(chosen).rationale.text,
      AllOf(StartsWith("tpe, for 1000 results "), EndsWith(": " + ProposedBy(tpe).rationale.text)));
}

TEST(Auto, AFailureIsNoResult) {
  Auto chosen(Named("auto", Line()));
  Tell(chosen, 1'000, TrialState::kFailed);
  EXPECT_THAT(ProposedBy(chosen).rationale.text, StartsWith("gp's turn, "));
}

TEST(Auto, IsTheSameAfterASnapshotInEitherStage) {
  for (const uint32_t trials : {20u, 1'000u}) {
    Auto chosen(Named("auto", Line()));
    Tell(chosen, trials);
    ArchiveWriter bytes;
    chosen.Save(bytes);
    const std::string saved = bytes.Take();
    Auto restored(Named("auto", Line()));
    ArchiveReader archive(saved);
    restored.Load(archive);
    EXPECT_TRUE(archive.AtEnd());
    for (const uint32_t proposal : {5'000u, 5'001u}) {
      EXPECT_EQ(ProposedBy(restored, proposal), ProposedBy(chosen, proposal));
    }
  }
}

TEST(Auto, RequiresALimitInStop) {
  SweepSpec spec = Named("auto", Line());
  spec.program.command = {"train"};
  EXPECT_THAT(AutoEntry().make(spec).error().message, StartsWith("stop: "));
  spec.stop.max_trials = 3;
  EXPECT_TRUE(AutoEntry().make(spec).ok());
}

// Golden: other values mean that running sweeps would get other proposals. The
// cases are the start, a model, and a model with many results, for both turns.
TEST(Auto, TheBitsOfAProposalAreGolden) {
  std::string proposed;
  for (const uint32_t trials : {0u, 30u, 1'000u}) {
    Auto chosen(Named("auto", Line()));
    Tell(chosen, trials);
    for (const uint32_t proposal : {5'000u, 5'001u}) {
      proposed += FormatReal(Real(ProposedBy(chosen, proposal).config, "x")) + " ";
    }
  }
  EXPECT_EQ(proposed,
            "0.450729661853984 0.5836080785375088 0.3041019446797276 0.3376255055820696 "
            "0.30031048593368026 0.29999999870800126 ");
}

}  // namespace
}  // namespace attune::searchers
