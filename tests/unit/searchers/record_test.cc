#include "searchers/model/record.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/searchers/history.h"

namespace attune::searchers {
namespace {

using ::testing::ElementsAre;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

SweepSpec Spec() {
  return {.objectives = {Minimise("loss")},
          .space = SearchSpace({{"x", IntDomain{.min = 0, .max = 9}}})};
}
Config X(int64_t x) { return {{"x", x}}; }

// The trials, the best first.
std::vector<uint32_t> Ranking(const Record& record) {
  std::vector<uint32_t> trials;
  for (uint32_t i = 0; i < record.size(); ++i) trials.push_back(i);
  std::ranges::sort(trials, [&](uint32_t a, uint32_t b) { return record.Better(a, b); });
  return trials;
}

TEST(Record, RanksCompletedTrialsThenUnfinishedThenFailedOnes) {
  Record record(Spec());
  History history(record);
  const uint32_t running = history.Create(X(0));
  const uint32_t failed = history.Create(X(1));
  history.Report(failed, {{"loss", 0.0}});
  history.End(failed, TrialState::kFailed);
  const uint32_t short_one = history.Create(X(2));
  history.Report(short_one, {{"loss", 0.1}}, 3);
  history.End(short_one, TrialState::kStopped);
  const uint32_t longer = history.Create(X(3));
  history.Report(longer, {{"loss", 0.9}}, 9);
  history.Pause(longer);
  const uint32_t worse = history.Done(X(4), 2);
  const uint32_t better = history.Done(X(5), 1);
  const uint32_t nan = history.Done(X(6), kNaN);

  EXPECT_THAT(Ranking(record), ElementsAre(better, worse, longer, short_one, failed, nan, running));
}

TEST(Record, RanksATrialByItsBestReport) {
  Record record(Spec());
  History history(record);
  const uint32_t trial = history.Create(X(0));
  for (const double loss : {3.0, 1.0, kNaN, 2.0}) history.Report(trial, {{"loss", loss}});
  history.End(trial);
  EXPECT_EQ(record.trial(trial).value, 1);
  EXPECT_EQ(record.trial(trial).standing, Standing::kComplete);
}

TEST(Record, StoresSmallValuesAsGoodInBothModes) {
  SweepSpec spec = Spec();
  spec.objectives = {Maximise("loss")};
  Record record(spec);
  History history(record);
  history.Done(X(0), 1);
  history.Done(X(1), 2);
  EXPECT_THAT(Ranking(record), ElementsAre(1, 0));
}

TEST(Record, KeepsTheNewestUndominatedReport) {
  SweepSpec spec = Spec();
  spec.objectives = {Minimise("loss"), Maximise("speed")};
  Record record(spec);
  History history(record);
  const uint32_t trial = history.Create(X(0));
  history.Report(trial, {{"loss", 3}, {"speed", 5}}, 1);
  history.Report(trial, {{"loss", 2}, {"speed", 4}}, 2);  // better in the first
  history.Report(trial, {{"loss", 2}, {"speed", 3}}, 3);  // dominated
  EXPECT_EQ(record.Result(trial, 0), 2);
  EXPECT_EQ(record.Result(trial, 1), -4);
}

TEST(Record, RanksInfeasibleTrialsByViolation) {
  SweepSpec spec = Spec();
  spec.constraints = {{.metric = "ms", .max = 20}, {.metric = "mb", .min = 1, .max = 5}};
  Record record(spec);
  History history(record);
  const auto done = [&](double loss, double ms, double mb) {
    const uint32_t trial = history.Create(X(0));
    history.Report(trial, {{"loss", loss}, {"ms", ms}, {"mb", mb}});
    history.End(trial);
    return trial;
  };
  const uint32_t far = done(0, 30, 7);
  const uint32_t near = done(1, 21, 5);
  const uint32_t inside = done(9, 20, 1);
  EXPECT_THAT(Ranking(record), ElementsAre(inside, near, far));
  EXPECT_EQ(record.trial(far).violation, 12);
}

TEST(Record, ATrialWithoutAMetricHasFailed) {
  SweepSpec spec = Spec();
  spec.objectives.push_back(Minimise("size"));
  spec.constraints = {{.metric = "ms", .max = 20}};
  Record record(spec);
  History history(record);
  const uint32_t trial = history.Create(X(0));
  history.Report(trial, {{"loss", 1}, {"size", kNaN}, {"ms", 1}});
  history.End(trial);
  EXPECT_EQ(record.trial(trial).standing, Standing::kFailed);
}

TEST(Record, ATrialStoppedBeforeItsFirstReportHasNoStanding) {
  Record record(Spec());
  History history(record);
  const uint32_t trial = history.Create(X(0));
  history.End(trial, TrialState::kKilled);
  EXPECT_EQ(record.trial(trial).standing, Standing::kNone);
  history.Tell(TrialReopened{.record = {.id = history.Id(trial)}});
  EXPECT_EQ(record.trial(trial).standing, Standing::kRunning);
}

TEST(Record, APausedSweepLeavesTrialsRunning) {
  Record record(Spec());
  History history(record);
  const uint32_t trial = history.Create(X(0));
  history.Report(trial, {{"loss", 1}});
  history.Pause(trial, std::string(kSweepPaused));
  EXPECT_EQ(record.trial(trial).standing, Standing::kRunning);
}

TEST(Record, AnotherConfigurationRestartsATrial) {
  Record record(Spec());
  History history(record);
  const uint32_t trial = history.Create(X(0));
  history.Report(trial, {{"loss", 1}});
  history.Pause(trial);
  history.Tell(TrialPromoted{.trial = history.Id(trial), .config = X(9)});
  EXPECT_EQ(record.trial(trial).standing, Standing::kRunning);
  EXPECT_FALSE(record.trial(trial).has_value);
  EXPECT_DOUBLE_EQ(record.Coordinate(trial, 0), 0.95);
}

TEST(Record, AnEditKeepsTrialsInsideTheRanges) {
  Record record(Spec());
  History history(record);
  history.Done(X(2), 1);
  history.Done(X(9), 2);
  SweepSpec narrow = Spec();
  narrow.space = SearchSpace({{"x", IntDomain{.min = 0, .max = 4}}});
  record.Adapt(narrow);
  EXPECT_DOUBLE_EQ(record.Coordinate(0, 0), 0.5);
  EXPECT_EQ(record.trial(0).standing, Standing::kComplete);
  EXPECT_EQ(record.trial(1).standing, Standing::kNone);
  EXPECT_TRUE(record.HasTried({0.5}));
}

TEST(Record, AWiderRangeRestoresExcludedTrials) {
  const auto choices = [](std::vector<Value> values) {
    return SearchSpace({{"x", CategoricalDomain{std::move(values)}}});
  };
  SweepSpec spec{.objectives = {Minimise("loss")},
                 .space = choices({std::string("a"), std::string("b"), std::string("c")})};
  Record record(spec);
  History history(record);
  history.Done({{"x", std::string("c")}}, 1);
  spec.space = choices({std::string("b"), std::string("a")});
  record.Adapt(spec);
  EXPECT_EQ(record.trial(0).standing, Standing::kNone);
  history.Done({{"x", std::string("a")}}, 2);
  spec.space = choices({std::string("c"), std::string("a")});
  record.Adapt(spec);
  EXPECT_EQ(record.trial(0).standing, Standing::kComplete);
  EXPECT_EQ(record.Coordinate(0, 0), 0);
  EXPECT_EQ(record.Coordinate(1, 0), 1);
  EXPECT_TRUE(record.HasTried({0}));
}

TEST(Record, ATrialOnANewBoundIsInside) {
  for (const Scale scale : {Scale::kLinear, Scale::kLog}) {
    for (const double bound : {0.003, 0.01, 0.02, 0.3, 0.7}) {
      SweepSpec spec{.objectives = {Minimise("loss")},
                     .space = SearchSpace({{"x", FloatDomain{0.001, 5, scale}}})};
      Record record(spec);
      History history(record);
      history.Done({{"x", bound}}, 1);
      spec.space = SearchSpace({{"x", FloatDomain{0.001, bound, scale}}});
      record.Adapt(spec);
      EXPECT_EQ(record.Coordinate(0, 0), 1) << bound;
      spec.space = SearchSpace({{"x", FloatDomain{bound, 5, scale}}});
      record.Adapt(spec);
      EXPECT_EQ(record.Coordinate(0, 0), 0) << bound;
    }
  }
}

// Its value lies just beyond the condition's bound, whatever the range.
TEST(Record, AnEditKeepsConditions) {
  const auto space = [](double max) {
    return SearchSpace(
        {{"lr", FloatDomain{0.001, max}},
         {.name = "m", .domain = FloatDomain{0, 1}, .when = {{.parent = "lr", .at_most = 0.1}}}});
  };
  SweepSpec spec{.objectives = {Minimise("loss")}, .space = space(5)};
  Record record(spec);
  History history(record);
  history.Done({{"lr", 0.10000000000000002}}, 1);
  history.Done({{"lr", 0.1}, {"m", 0.3}}, 2);
  for (const double max : {10.0, 7.0, 3.3, 5.0}) {
    spec.space = space(max);
    record.Adapt(spec);
    EXPECT_TRUE(std::isnan(record.Coordinate(0, 1)));
    EXPECT_EQ(record.Coordinate(1, 1), 0.3);
  }
}

TEST(Record, KnowsTriedPointsInAFiniteSpace) {
  Record record(Spec());
  History history(record);
  history.Create(X(3));
  EXPECT_TRUE(record.HasTried({0.35}));
  EXPECT_FALSE(record.HasTried({0.45}));
}

TEST(Record, IsRestoredFromItsBytes) {
  Record record(Spec());
  History history(record);
  history.Done(X(3), 1);
  history.Create(X(4));
  ArchiveWriter saved;
  record.Save(saved);
  const std::string bytes = saved.Take();

  Record loaded(Spec());
  ArchiveReader archive(bytes);
  loaded.Load(archive);
  EXPECT_TRUE(archive.AtEnd());
  ArchiveWriter again;
  loaded.Save(again);
  EXPECT_EQ(again.Take(), bytes);
  EXPECT_TRUE(loaded.HasTried({0.45}));

  ArchiveReader cut(std::string_view(bytes).substr(0, bytes.size() / 2));
  loaded.Load(cut);
  EXPECT_FALSE(cut.ok());
}

// The memory per trial, without the coordinates and the hash.
TEST(Record, ATrialIsSmall) { EXPECT_LE(sizeof(Trial), 32u); }

}  // namespace
}  // namespace attune::searchers
