#include "schedulers/extrapolation.h"

#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "schedulers/asha.h"
#include "tests/unit/schedulers/harness.h"

// Predictions of curves, and the scheduler that ranks by them.
namespace attune::schedulers {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

struct Row {
  std::vector<double> costs;
  std::vector<double> bests;
};

// Seven trials at three rungs; between rungs some were better than at them.
const std::vector<Row> kRows = {{{.9, .5, .4}, {.9, .5, .38}},
                                {{.8, .6}, {.8, .55}},
                                {{.95, .9, .85}, {.95, .9, .8}},
                                {{1.2}, {1.1}},
                                {{.7}, {.7}},
                                {{3.}, {2.}},
                                {{.85, .45}, {.85, .45}}};

Extrapolation Fitted(const std::vector<Row>& rows) {
  Extrapolation curves(3);
  for (uint32_t trial = 0; trial < rows.size(); ++trial) {
    const Row& row = rows[trial];
    for (size_t rung = 0; rung < row.costs.size(); ++rung) {
      curves.ObserveCost(TrialNumber(trial), row.bests[rung]);
      curves.Record(TrialNumber(trial), rung, row.costs[rung], row.bests[rung]);
    }
  }
  curves.Fit();
  return curves;
}

// The score of a recorded trial.
Ranking::Score Forecast(const Extrapolation& curves, uint32_t trial, size_t rung) {
  return curves.ScoreOf(TrialNumber(trial), rung, 0);
}

// Expected values: the same regressions by a program of linear algebra, without this code.
TEST(Extrapolation, IsTheDocumentedRidgeRegression) {
  const Extrapolation curves = Fitted(kRows);
  struct Expected {
    uint32_t trial;
    size_t rung;
    double cost;
    double spread;
  };
  for (const auto& [trial, rung, cost, spread] :
       std::vector<Expected>{{0, 0, 0.594092809, 0.163730739},
                             {0, 1, 0.395806188, 0.025277084},
                             {0, 2, 0.38, 0},
                             {1, 0, 0.555051377, 0.144597485},
                             {1, 1, 0.456040832, 0.036488327},
                             {2, 1, 0.810970478, 0.102550017},
                             {3, 0, 0.667613498, 0.199761436},
                             {4, 0, 0.514005682, 0.124481991},
                             {5, 0, 0.954349343, 0.340283682},
                             {6, 1, 0.358820145, 0.022335139}}) {
    const auto forecast = Forecast(curves, trial, rung);
    EXPECT_NEAR(forecast.cost, cost, 1e-8) << trial << " at " << rung;
    EXPECT_NEAR(forecast.spread.value_or(0), spread, 1e-8) << trial << " at " << rung;
  }
}

TEST(Extrapolation, ExpectsHalfOfTheLastFallWithoutCurves) {
  Extrapolation curves(3);
  const auto come = [&](uint32_t trial, size_t rung, double cost) {
    curves.ObserveCost(TrialNumber(trial), cost);
    curves.Record(TrialNumber(trial), rung, cost, cost);
  };
  come(0, 1, 0.0);  // sets the scale: the others are 1 and 3 units above it
  come(1, 1, 1.0);
  come(2, 1, 3.0);
  curves.Fit();
  EXPECT_LT(Forecast(curves, 1, 1).cost, 1);
  EXPECT_GT(Forecast(curves, 1, 1).cost, 0.8);
  // A curve that falls steeply is expected to fall more than a flat curve with the same value.
  come(3, 0, 3.0);
  come(3, 1, 1.0);
  come(4, 0, 1.0);
  come(4, 1, 1.0);
  EXPECT_LT(Forecast(curves, 3, 1).cost, Forecast(curves, 4, 1).cost - 0.2);
}

TEST(Extrapolation, LearnsHowMuchCurvesOfItsKindStillFall) {
  Extrapolation curves(2);
  RandomStream random(7, ProposalNumber(0), "test");
  for (uint32_t trial = 0; trial < 60; ++trial) {
    const double end = random.Uniform();
    for (const auto& [rung, cost] : {std::pair<size_t, double>{0, end + 1}, {1, end}}) {
      curves.ObserveCost(TrialNumber(trial), cost);
      curves.Record(TrialNumber(trial), rung, cost, cost);
    }
  }
  curves.Fit();
  double worst = 0;
  for (const double end : {0.1, 0.5, 0.9}) {
    const auto forecast = curves.ScoreOf(TrialNumber(100), 0, end + 1);
    worst = std::max(worst, std::abs(forecast.cost - end));
    EXPECT_LT(std::abs(forecast.cost - end), 3 * *forecast.spread);
  }
  EXPECT_LT(worst, 0.35);  // of curves that fall by 1
}

TEST(Extrapolation, TreatsValuesThatAreNotFiniteAsWorst) {
  std::vector<Row> rows = kRows;
  const Extrapolation before = Fitted(rows);
  Extrapolation curves(3);
  EXPECT_FALSE(std::isfinite(curves.ScoreOf(TrialNumber(0), 0, kNaN).cost));
  EXPECT_FALSE(curves.IsFitDue());
  for (const double cost : {kNaN, kInf, -kInf}) {
    curves.ObserveCost(TrialNumber(0), cost);
    curves.Record(TrialNumber(0), 0, cost, kInf);
    EXPECT_EQ(curves.BestOf(TrialNumber(0)), kInf);
    EXPECT_EQ(Forecast(curves, 0, 0).cost, kInf);
    EXPECT_FALSE(curves.IsFitDue());
  }
  // A spike at a rung does not change the best value of the curve.
  rows.push_back({{.9, kNaN}, {.9, .6}});
  EXPECT_TRUE(std::isfinite(Forecast(Fitted(rows), 7, 1).cost));
  EXPECT_NEAR(Forecast(Fitted(rows), 4, 0).cost, Forecast(before, 4, 0).cost, 0.2);
}

TEST(Extrapolation, ExtremeScalesStayFinite) {
  for (const double scale : {1e-300, 1e300, 1.0, -1e8}) {
    for (const double apart : {0.0, 1e-12, 1.0}) {
      std::vector<Row> rows;
      for (int i = 0; i < 9; ++i) {
        const double at = scale * (1 + apart * (i % 3) / 3);
        rows.push_back({{at, at, at}, {at, at, at}});
      }
      const Extrapolation curves = Fitted(rows);
      for (uint32_t trial = 0; trial < 9; ++trial) {
        for (size_t rung = 0; rung < 3; ++rung) {
          EXPECT_TRUE(std::isfinite(Forecast(curves, trial, rung).cost)) << scale;
        }
      }
    }
  }
}

TEST(Extrapolation, FitsAgainAfterATenthMoreRecordsOrABetterBest) {
  Extrapolation curves = Fitted(kRows);
  EXPECT_FALSE(curves.IsFitDue());
  curves.ObserveCost(TrialNumber(1), 0.375);  // hardly better than 0.38
  EXPECT_FALSE(curves.IsFitDue());
  curves.ObserveCost(TrialNumber(1), 0.2);
  EXPECT_FALSE(curves.IsFitDue());  // it is recorded at no rung
  curves.Record(TrialNumber(1), 2, 0.2, 0.2);
  EXPECT_TRUE(curves.IsFitDue());
  curves.Fit();
  EXPECT_FALSE(curves.IsFitDue());
}

TEST(Extrapolation, ASpreadIsSaidWithTwoDigits) {
  EXPECT_EQ(SpreadText(0.0404222), "0.04");
  EXPECT_EQ(SpreadText(0.00123), "0.0012");
  EXPECT_EQ(SpreadText(17.4), "17");
}

// ---- the scheduler -------------------------------------------------------------------------

Asha Extrapolating(Mode mode = Mode::kMin) {
  return Asha({"loss", mode}, Ladder({Step(1), Step(9), 3}), Asha::Form::kPromote,
              std::make_unique<Extrapolation>(3), "extrapolate");
}

// Six trials at the first rung, the fifth being the best.
void Begin(SchedulerHarness& sweep, double sign = 1) {
  for (uint32_t trial = 0; trial < 5; ++trial) {
    sweep.Report({trial, 1}, sign * (1 - 0.1 * trial));
    EXPECT_THAT(sweep.verdict(), Pauses());
    EXPECT_EQ(sweep.Promoted(), std::nullopt);  // a new one, until six have come
  }
  sweep.Report({5, 1}, sign * 1.5);
}

TEST(Extrapolate, PromotesTheBestPredictedCurves) {
  for (const double sign : {1.0, -1.0}) {
    SchedulerHarness sweep(Extrapolating(sign > 0 ? Mode::kMin : Mode::kMax), "loss");
    Begin(sweep, sign);
    EXPECT_THAT(sweep.verdict(), Pauses());
    EXPECT_THAT(sweep.Promoted(), Optional(4u));
    EXPECT_THAT(sweep.Promoted(), Optional(3u));
    EXPECT_EQ(sweep.Promoted(), std::nullopt);  // two of six
    // Three trials at the second rung: one stays at 0.5, and another falls below it.
    sweep.Report({4, 2}, sign * 0.5).Report({4, 3}, sign * 0.5);
    sweep.Report({3, 2}, sign * 0.7).Report({3, 3}, sign * 0.52);
    sweep.Report({6, 1}, sign * 2.0).Report({7, 1}, sign * 2.0).Report({8, 1}, sign * 2.0);
    EXPECT_THAT(sweep.Promoted(), Optional(2u));
    sweep.Report({2, 3}, sign * 0.9);
    EXPECT_THAT(sweep.Promoted(), Optional(3u)) << sweep.promotion().text;
    EXPECT_EQ(sweep.promotion().rung, Step(3));
    EXPECT_THAT(sweep.promotion().text,
                HasSubstr("loss " + std::string(sign > 0 ? "" : "-") + "0.52 "));
    EXPECT_EQ(sweep.promotion().rule, "extrapolate");
    EXPECT_EQ(sweep.promotion().rank, 1);
  }
}

TEST(Extrapolate, PromotesTheBestOfFewIfNoMoreCome) {
  SchedulerHarness sweep(Extrapolating(), "loss");
  sweep.Report({0, 1}, 0.3).Report({1, 1}, 0.2).Report({2, 1}, 0.4);
  EXPECT_EQ(sweep.Promoted(), std::nullopt);
  EXPECT_THAT(sweep.Promoted(/*may_create=*/false), Optional(1u));
}

TEST(Extrapolate, StopsTrialsWithoutAFiniteValue) {
  SchedulerHarness sweep(Extrapolating(), "loss");
  Begin(sweep);
  sweep.Report({6, 1}, kNaN);
  EXPECT_THAT(sweep.verdict(), Stops("extrapolate"));
}

TEST(Extrapolate, CompletesAtTheLastRung) {
  SchedulerHarness sweep(Extrapolating(), "loss");
  Begin(sweep);
  EXPECT_THAT(sweep.Promoted(), Optional(4u));
  sweep.Report({4, 3}, 0.5);
  sweep.Report({4, 9}, 0.4);
  EXPECT_THAT(sweep.verdict(), Continues());
  EXPECT_EQ(sweep.verdict().reason.rung, Step(9));
  EXPECT_EQ(sweep.verdict().reason.rank, 1);
}

TEST(Extrapolate, IsTheSameAfterARestartAtAnyReport) {
  const auto run = [](int restart_every) {
    SchedulerHarness sweep(Extrapolating(), "loss");
    RandomStream random(3, ProposalNumber(0), "test");
    std::string texts;
    int reports = 0;
    std::vector<uint32_t> due;
    std::map<uint32_t, int64_t> at;
    for (uint32_t next = 0; next < 40;) {
      const auto promoted = sweep.Promoted();
      const uint32_t trial = promoted ? *promoted : next++;
      texts += " " + std::to_string(trial);
      do {
        sweep.Report({trial, ++at[trial]},
                     (1 + trial % 7) / std::sqrt(1.0 + at[trial]) + 0.1 * random.Uniform());
        texts += sweep.text();
        if (restart_every > 0 && ++reports % restart_every == 0) sweep.Restore(Extrapolating());
      } while (sweep.verdict().kind == VerdictKind::kContinue && at[trial] < 9);
    }
    return texts;
  };
  const std::string plain = run(0);
  EXPECT_EQ(run(1), plain);
  EXPECT_EQ(run(5), plain);
  EXPECT_THAT(plain, HasSubstr("completes"));
}

}  // namespace
}  // namespace attune::schedulers
