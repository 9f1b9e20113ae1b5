#include "searchers/model/rationale.h"

#include <memory>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "searchers/model/nearest.h"
#include "searchers/model/untried.h"
#include "searchers/register.h"
#include "tests/support/golden.h"
#include "tests/unit/searchers/history.h"

namespace attune::searchers {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

Value Text(const char* text) { return std::string(text); }

SweepSpec SpecOf(std::vector<Parameter> parameters, const std::string& searcher = "random") {
  return {.objectives = {Minimise("loss")},
          .space = SearchSpace(std::move(parameters)),
          .searcher = {.name = searcher},
          .seed = 1};
}

std::vector<Parameter> Four() {
  return {{"lr", FloatDomain{.min = 1e-4, .max = 1, .scale = Scale::kLog}},
          {"width", IntDomain{.min = 0, .max = 100}},
          {"optimizer", CategoricalDomain{{Text("sgd"), Text("adam")}}},
          {"momentum", FloatDomain{.min = 0, .max = 1}, {{"optimizer", {Text("sgd")}}}}};
}

Config Sgd(double lr, int64_t width, double momentum) {
  return {{"lr", lr}, {"width", width}, {"optimizer", Text("sgd")}, {"momentum", momentum}};
}

// A searcher and the sweep that it observes.
struct ObservedSearcher {
  std::unique_ptr<Searcher> searcher;
  std::unique_ptr<History<Searcher>> history;

  Rationale Next(uint32_t proposal) const {
    return std::get<Proposed>(searcher->Suggest(ProposalNumber(proposal))).rationale;
  }
};

ObservedSearcher Make(SweepSpec spec) {
  Algorithms algorithms;
  RegisterSearchers(algorithms);
  algorithms.Complete(spec);
  ObservedSearcher observed{.searcher = algorithms.MakeSearcher(spec).value()};
  observed.history = std::make_unique<History<Searcher>>(*observed.searcher);
  return observed;
}

TEST(Rationale, NamesTheLargestChangesFirstAndCountsTheRest) {
  Record record(SpecOf(Four()));
  History history(record);
  history.Create(Sgd(0.01, 50, 0.5));
  EXPECT_EQ(DescribeChanges(record, 0, Sgd(0.01, 50, 0.5)), "");
  EXPECT_EQ(DescribeChanges(record, 0, Sgd(0.01, 60, 0.5)), "width from 50 to 60");
  EXPECT_EQ(DescribeChanges(record, 0, Sgd(0.1, 60, 0.9)),
            "momentum from 0.5 to 0.9, lr from 0.01 to 0.1 and 1 more");
}

TEST(Rationale, NamesNewAndAbsentParameters) {
  Record record(SpecOf(Four()));
  History history(record);
  const Config adam{{"lr", 0.01}, {"width", int64_t{50}}, {"optimizer", Text("adam")}};
  history.Create(Sgd(0.01, 50, 0.5));
  history.Create(adam);
  testing::ExpectGolden("searchers/changes", DescribeChanges(record, 0, adam) + "\n" +
                                                 DescribeChanges(record, 1, Sgd(0.01, 50, 0.25)) +
                                                 "\n");
}

TEST(Rationale, ShowsEnoughDigitsForASmallChange) {
  Record record(SpecOf(Four()));
  History history(record);
  history.Create(Sgd(0.01, 50, 0.5));
  EXPECT_EQ(DescribeChanges(record, 0, Sgd(0.01, 50, 0.500001)), "momentum from 0.5 to 0.500001");
  history.Create(Sgd(0.01, 50, 0.51234567));
  EXPECT_EQ(DescribeChanges(record, 1, Sgd(0.01, 50, 0.51239999)),
            "momentum from 0.5123 to 0.5124");
}

TEST(Rationale, LongNamesAndValuesAreCutBetweenCharacters) {
  const std::string umlauts = "ääääääääääääääää";  // two bytes each
  Record record(
      SpecOf({{"a_name_of_more_than_24_bytes", CategoricalDomain{{umlauts, Text("b")}}}}));
  History history(record);
  history.Create({{"a_name_of_more_than_24_bytes", Text("b")}});
  EXPECT_EQ(DescribeChanges(record, 0, {{"a_name_of_more_than_24_bytes", umlauts}}),
            "a_name_of_more_than_24_b… from b to ääääääääääää…");
}

TEST(Rationale, TheNearestTrialIsNearOnTheScalesOfTheSpace) {
  Record record(SpecOf(Four()));
  History history(record);
  history.Create(Sgd(1e-4, 50, 0.5));
  history.Create(Sgd(0.02, 50, 0.5));
  history.Create(Sgd(0.02, 50, 0.5));
  const Point point = record.cube().Place(Sgd(0.005, 50, 0.5)).value();
  EXPECT_EQ(Nearest(record, {0, 1, 2}, point), 1u) << "of equals the first";
  EXPECT_EQ(Nearest(record, {0}, point), 0u);
}

TEST(Rationale, OfTpeNamesANearGoodTrialAndWhatMoved) {
  const ObservedSearcher tpe = Make(SpecOf({{"x", FloatDomain{.min = 0, .max = 1}}}, "tpe"));
  const std::string first = tpe.Next(0).text;
  for (int i = 0; i < 20; ++i) {
    const double x = i / 20.0;
    tpe.history->Done({{"x", x}}, std::abs(x - 0.5));
  }
  const Rationale rationale = tpe.Next(20);
  EXPECT_EQ(rationale.rule, "density_ratio");
  EXPECT_EQ(rationale.results, 20);
  EXPECT_GT(rationale.score.value(), 0);
  ASSERT_EQ(rationale.from.size(), 1u);
  EXPECT_NEAR(rationale.from[0].value, 10, 2) << "one of the best four";
  const std::regex digits("[0-9.]+");
  testing::ExpectGolden("searchers/tpe",
                        first + "\n" + std::regex_replace(rationale.text, digits, "N") + "\n");
}

TEST(Rationale, OfEvolutionNamesTheParentAndTheMutation) {
  const ObservedSearcher evolution =
      Make(SpecOf({{"x", FloatDomain{.min = 0, .max = 1}}}, "evolution"));
  EXPECT_EQ(evolution.Next(0).rule, "sobol");
  for (int i = 0; i < 20; ++i) evolution.history->Done({{"x", i / 20.0}}, i);
  const Rationale rationale = evolution.Next(20);
  EXPECT_EQ(rationale.rule, "mutation");
  ASSERT_EQ(rationale.from.size(), 1u);
  EXPECT_THAT(rationale.text,
              HasSubstr("trial " + std::to_string(rationale.from[0].value) + ": x from "));
}

TEST(Rationale, OfNsga2NamesTheParents) {
  const ObservedSearcher nsga2 = Make(SpecOf({{"x", FloatDomain{.min = 0, .max = 1}}}, "nsga2"));
  for (int i = 0; i < 40; ++i) nsga2.history->Done({{"x", i / 40.0}}, i);
  size_t with_two_parents = 0;
  for (uint32_t i = 40; i < 60; ++i) {
    const Rationale rationale = nsga2.Next(i);
    EXPECT_EQ(rationale.rule, "crossover");
    EXPECT_EQ(rationale.results, 40);
    const std::string mother = "trial " + std::to_string(rationale.from.at(0).value);
    EXPECT_THAT(rationale.text, HasSubstr(mother));
    if (rationale.from.size() == 1) continue;
    ++with_two_parents;
    EXPECT_THAT(rationale.text,
                HasSubstr(mother + " and trial " + std::to_string(rationale.from[1].value)));
  }
  EXPECT_GT(with_two_parents, 0u);
  EXPECT_LT(
      with_two_parents,
      20u);  // half of the coordinates are not crossed, and only parents that gave one are named
}

TEST(Rationale, OfCmaesCountsGenerations) {
  const ObservedSearcher cmaes = Make(SpecOf({{"x", FloatDomain{.min = 0, .max = 1}}}, "cmaes"));
  EXPECT_THAT(cmaes.Next(0).text, AllOf(HasSubstr("generation 1, of 4: "), EndsWith(" 0.15")));
  for (int i = 0; i < 4; ++i) cmaes.history->Done({{"x", 0.5 + i / 20.0}}, i);
  EXPECT_THAT(cmaes.Next(4).text, HasSubstr("generation 2, of 4: "));
}

TEST(Rationale, OfGridCountsConfigurations) {
  const ObservedSearcher grid = Make(
      SpecOf({{"a", IntDomain{.min = 1, .max = 3}}, {"b", IntDomain{.min = 1, .max = 4}}}, "grid"));
  EXPECT_EQ(grid.Next(0).text, "configuration 1 of 12");
  grid.history->Create({{"a", int64_t{1}}, {"b", int64_t{1}}}, "grid");
  EXPECT_EQ(grid.Next(1).text, "configuration 2 of 12");
}

TEST(Rationale, OfSobolAndRandomNamesTheirSource) {
  const std::vector<Parameter> line{{"x", FloatDomain{.min = 0, .max = 1}}};
  testing::ExpectGolden("searchers/random_and_sobol",
                        Make(SpecOf(line, "random")).Next(3).text + "\n" +
                            Make(SpecOf(line, "sobol")).Next(16).text + "\n");
}

TEST(Rationale, ExplainsAProposalThatIsNotFromTheModel) {
  Record record(SpecOf({{"a", IntDomain{.min = 1, .max = 3}}}));
  History history(record);
  history.Create({{"a", int64_t{1}}});
  const auto said = [&](int new_at) {
    const auto propose = [&](int attempt) {
      return Config{{"a", int64_t{attempt >= new_at ? 3 : 1}}};
    };
    const auto explain = [](int attempt, const Config&) {
      return Rationale{.rule = "model", .text = "attempt " + std::to_string(attempt)};
    };
    return std::get<Proposed>(ProposeUntried(record, propose, explain)).rationale;
  };
  EXPECT_EQ(said(5).text, "attempt 5");
  EXPECT_EQ(said(kModelAttempts).rule, "random");
  EXPECT_EQ(said(1'000).rule, "remaining");
}

}  // namespace
}  // namespace attune::searchers
