#include "searchers/model/prior.h"

#include <memory>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/result.h"
#include "core/algorithms/algorithms.h"
#include "searchers/model/record.h"
#include "searchers/register.h"
#include "tests/unit/searchers/problems.h"

namespace attune::searchers {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Results of a sweep on the plane, the best first, around (x, y).
WarmStart Around(double x, double y, SweepId from = SweepId(3), int count = 40) {
  WarmStart start{.from = from, .results = count};
  RandomStream random(from.value, TrialNumber(0), "test/prior");
  for (int i = 0; i < count; ++i) {
    const double apart = 4.0 * (i + 1) / count;
    const Config config{{"x", std::clamp(x + random.Uniform(-apart, apart), -5.0, 5.0)},
                        {"y", std::clamp(y + random.Uniform(-apart, apart), -5.0, 5.0)}};
    start.taken.push_back({{from, TrialNumber(static_cast<uint32_t>(i))},
                           config,
                           (i + 0.5) / static_cast<double>(count)});
  }
  return start;
}

SweepSpec SpecFor(const std::string& name, std::vector<Parameter> parameters = Plane()) {
  Algorithms algorithms;
  RegisterSearchers(algorithms);
  SweepSpec spec{.objectives = {Minimise("loss")},
                 .space = SearchSpace(std::move(parameters)),
                 .searcher = {.name = name, .options = {}},
                 .seed = 5,
                 .warm_start = {SweepId(3)}};
  algorithms.Complete(spec);
  return spec;
}

Result<std::unique_ptr<Searcher>> Made(const SweepSpec& spec) {
  Algorithms algorithms;
  RegisterSearchers(algorithms);
  return algorithms.MakeSearcher(spec);
}

Event Created(std::vector<WarmStart> starts) {
  return {EventSeq(1), Time{0}, SweepCreated{.sweep = SweepId(9), .warm_start = std::move(starts)}};
}

Record RecordOf(const SweepSpec& spec, std::vector<WarmStart> starts) {
  Record record(spec);
  record.Observe(Created(std::move(starts)));
  return record;
}

TEST(Prior, IsEmptyWithoutEarlierResults) {
  const Record record(SpecFor("tpe"));
  EXPECT_TRUE(Prior(record).empty());
}

TEST(Prior, IsDenserWhereEarlierResultsWereGood) {
  const Record record = RecordOf(SpecFor("tpe"), {Around(2, -1)});
  const Prior prior(record);
  EXPECT_GT(prior.LogDensity({0.7, 0.4}), prior.LogDensity({0.1, 0.9}) + 2);
}

TEST(Prior, ItsSlopeIsThatOfItsDensity) {
  const Prior prior(RecordOf(SpecFor("tpe"), {Around(2, -1)}));
  for (const Point& at : {Point{0.6, 0.45}, Point{0.2, 0.8}, Point{0.71, 0.39}}) {
    const std::vector<double> slope = prior.Slope(at);
    for (size_t k = 0; k < at.size(); ++k) {
      constexpr double kStep = 1e-6;
      Point low = at;
      Point high = at;
      low[k] -= kStep;
      high[k] += kStep;
      const double quotient = (prior.LogDensity(high) - prior.LogDensity(low)) / (2 * kStep);
      EXPECT_NEAR(slope[k], quotient, 1e-4 * (1 + std::abs(quotient)));
    }
  }
}

TEST(Prior, NamesTheBestOfEachSweepAndIgnoresResultsOutsideTheRanges) {
  SweepSpec spec = SpecFor("tpe");
  Record record = RecordOf(spec, {Around(4, 4, SweepId(3)), Around(-1, -1, SweepId(4))});
  EXPECT_EQ(Prior(record).best().size(), 2u);
  spec.space = SearchSpace(
      {{"x", FloatDomain{.min = -5, .max = 0}, {}}, {"y", FloatDomain{.min = -5, .max = 0}, {}}});
  record.Adapt(spec);
  const Prior prior(record);
  ASSERT_FALSE(prior.empty());
  for (const PriorResult& best : prior.best())
    EXPECT_TRUE(record.cube().Place(best.config).has_value());
}

TEST(Prior, IsDrawnFromInsideTheSpaceWithConditions) {
  const std::vector<Parameter> parameters{
      {"kind", CategoricalDomain{{std::string("a"), std::string("b")}}, {}},
      {"x", FloatDomain{.min = 0, .max = 1}, {{.parent = "kind", .any_of = {std::string("a")}}}},
      {"n", IntDomain{.min = 1, .max = 4}, {{.parent = "kind", .any_of = {std::string("b")}}}}};
  const SweepSpec spec = SpecFor("tpe", parameters);
  WarmStart start{.from = SweepId(3), .results = 1};
  start.taken.push_back(
      {{SweepId(3), TrialNumber(0)}, {{"kind", std::string("a")}, {"x", 0.3}}, 0.5});
  const Record record = RecordOf(spec, {start});
  const Prior prior(record);
  RandomStream random(1, TrialNumber(0), "test/draws");
  for (int i = 0; i < 50; ++i) {
    const Config config = prior.Draw(record.cube(), random);
    EXPECT_EQ(spec.space.Resolve(config).value(), config);
  }
}

class WarmSearcher : public ::testing::TestWithParam<std::string> {};

TEST_P(WarmSearcher, StartsNearGoodResults) {
  const auto distance = [&](const Searcher& searcher) {
    double sum = 0;
    for (uint32_t i = 0; i < 8; ++i) {
      const auto suggestion = searcher.Suggest(ProposalNumber(i));
      sum += Bowl(std::get<Proposed>(suggestion).config);
    }
    return sum / 8;
  };
  const auto cold = Made(SpecFor(GetParam())).value();
  const auto warm = Made(SpecFor(GetParam())).value();
  warm->Observe(Created({Around(2, -1)}));
  // Half of the start points of evolutionary searchers are points of the sequence.
  const bool breeds = GetParam() == "evolution" || GetParam() == "nsga2";
  EXPECT_LT(distance(*warm), (breeds ? 0.75 : 0.5) * distance(*cold));
}

// The best point of this sweep is not where earlier sweeps were good.
TEST_P(WarmSearcher, FindsTheBestWhereEarlierResultsWereMisleading) {
  const auto warm = Made(SpecFor(GetParam())).value();
  warm->Observe(Created({Around(-4, 4)}));
  EXPECT_LT(BestOf(*warm, 80, Bowl), 1);
}

INSTANTIATE_TEST_SUITE_P(All, WarmSearcher,
                         ::testing::Values("tpe", "bohb", "gp", "cmaes", "evolution", "nsga2",
                                           "auto"),
                         [](const auto& tested) { return tested.param; });

TEST(WarmSearchers, ProposesAndExplainsTheBestOfEachSweepFirst) {
  for (const char* name : {"tpe", "bohb", "gp", "evolution", "nsga2", "auto"}) {
    const auto warm = Made(SpecFor(name)).value();
    const WarmStart start = Around(2, -1);
    warm->Observe(Created({start}));
    const auto first = std::get<Proposed>(warm->Suggest(ProposalNumber(0)));
    EXPECT_EQ(first.config, start.taken.front().config);
    EXPECT_EQ(first.rationale.rule, "warm_start");
    EXPECT_THAT(first.rationale.text, AllOf(HasSubstr("best of s3"), HasSubstr("trial 0")));
  }
}

TEST(WarmSearchers, SearchersWithoutAWarmStartRefuseIt) {
  for (const char* name : {"random", "grid", "sobol"}) {
    const auto made = Made(SpecFor(name, {{"n", IntDomain{.min = 1, .max = 4}, {}}}));
    ASSERT_FALSE(made.ok()) << name;
    EXPECT_THAT(made.error().message,
                HasSubstr("warm_start: " + std::string(name) + " learns nothing"));
  }
}

// Two bowls with minima at x = -4 and x = 4. The front lies between them, at y = -1.
SweepSpec TwoBowls(const std::string& name) {
  SweepSpec spec = SpecFor(name);
  spec.objectives.push_back(Minimise("size"));
  return spec;
}

double DistanceFromFront(const Config& config) {
  return std::abs(Real(config, "y") + 1) + std::max(0.0, std::abs(Real(config, "x")) - 4);
}

// Results of an earlier sweep with both objectives, at growing distances from the front.
WarmStart AlongTheFront(int count = 40) {
  WarmStart start{.from = SweepId(3), .results = count};
  for (int i = 0; i < count; ++i) {
    const Config config{{"x", (i * 7 % 11 - 5) * 0.8}, {"y", 5.9 * i / count - 1}};
    start.taken.push_back({{start.from, TrialNumber(static_cast<uint32_t>(i))},
                           config,
                           (i + 0.5) / static_cast<double>(count)});
  }
  return start;
}

class WarmSearcherOfSeveral : public ::testing::TestWithParam<std::string> {};

TEST_P(WarmSearcherOfSeveral, StartsNearTheFront) {
  const auto warm = Made(TwoBowls(GetParam())).value();
  const auto cold = Made(TwoBowls(GetParam())).value();
  warm->Observe(Created({AlongTheFront()}));
  double of_warm = 0;
  double of_cold = 0;
  for (uint32_t i = 0; i < 16; i += 2) {  // evolutionary searchers draw every second start point
    of_warm += DistanceFromFront(Ask(*warm, i));
    of_cold += DistanceFromFront(Ask(*cold, i));
  }
  EXPECT_LT(of_warm, 0.4 * of_cold);
}

TEST_P(WarmSearcherOfSeveral, ProposesAndExplainsTheFirstOfTheFront) {
  const auto warm = Made(TwoBowls(GetParam())).value();
  const WarmStart start = AlongTheFront();
  warm->Observe(Created({start}));
  const auto first = std::get<Proposed>(warm->Suggest(ProposalNumber(0)));
  EXPECT_EQ(first.config, start.taken.front().config);
  EXPECT_THAT(first.rationale.text, AllOf(HasSubstr("front of s3"), HasSubstr("trial 0")));
}

INSTANTIATE_TEST_SUITE_P(All, WarmSearcherOfSeveral,
                         ::testing::Values("tpe", "gp", "evolution", "nsga2", "auto"),
                         [](const auto& tested) { return tested.param; });

// Proposal 0 repeats the best trial; then draws and points of the sequence alternate.
TEST(Population, AlternatesBetweenGoodResultsAndTheSequence) {
  const auto warm = Made(SpecFor("nsga2")).value();
  warm->Observe(Created({Around(4, 4)}));
  double near = 0;
  std::set<int> cells;
  for (uint32_t i = 2; i < 34; i += 2) {
    const auto drawn = std::get<Proposed>(warm->Suggest(ProposalNumber(i)));
    near += Real(drawn.config, "x") / 16;
    EXPECT_EQ(drawn.rationale.rule, "warm_start");
    const auto point = std::get<Proposed>(warm->Suggest(ProposalNumber(i - 1)));
    cells.insert(static_cast<int>((Real(point.config, "x") + 5) / 10 * 16));
    EXPECT_NE(point.rationale.rule, "warm_start");
  }
  EXPECT_NEAR(near, 4, 1);
  EXPECT_EQ(cells.size(), 16u) << "the points are one sequence, without holes";
}

TEST(Population, RepeatsTheBestOfEarlierSweepsAtAnySize) {
  for (const char* name : {"evolution", "nsga2"}) {
    const auto warm = Made(SpecFor(name)).value();
    const WarmStart start = Around(2, -1);
    warm->Observe(Created({start}));
    History history(*warm);
    for (int i = 0; i < 50; ++i) history.Done({{"x", i / 10.0}, {"y", 1.0}}, i);
    EXPECT_EQ(std::get<Proposed>(warm->Suggest(ProposalNumber(0))).config,
              start.taken.front().config);
    const Rationale later = std::get<Proposed>(warm->Suggest(ProposalNumber(1))).rationale;
    EXPECT_THAT(later.rule, ::testing::AnyOf("mutation", "crossover"));
  }
}

TEST(Population, StartsTheSameAfterASnapshot) {
  for (const char* name : {"evolution", "nsga2", "bohb"}) {
    const SweepSpec spec = SpecFor(name);
    const auto warm = Made(spec).value();
    warm->Observe(Created({Around(2, -1)}));
    ArchiveWriter bytes;
    warm->Save(bytes);
    const std::string saved = bytes.Take();
    ArchiveReader archive(saved);
    const auto again = Made(spec).value();
    again->Load(archive);
    for (uint32_t i = 0; i < 4; ++i)
      EXPECT_EQ(again->Suggest(ProposalNumber(i)), warm->Suggest(ProposalNumber(i))) << name;
  }
}

}  // namespace
}  // namespace attune::searchers
