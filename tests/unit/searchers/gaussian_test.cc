#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include "core/space/nondominated_sort.h"
#include "searchers/gaussian/descend.h"
#include "searchers/gaussian/hypervolume.h"
#include "searchers/gaussian/improvement.h"
#include "searchers/gaussian/matern.h"
#include "searchers/gaussian/maximise.h"
#include "searchers/gaussian/outcomes.h"
#include "searchers/gaussian/process.h"
#include "searchers/gaussian/trust_region.h"
#include "searchers/model/draw.h"
#include "tests/unit/searchers/history.h"

namespace attune::searchers {
namespace {

// Two numbers, a list, and a number that exists for one value of the list.
SearchSpace MixedSpace() {
  return SearchSpace(
      {{"x", FloatDomain{.min = 0, .max = 1}},
       {"n", IntDomain{.min = 1, .max = 9}},
       {"kind", CategoricalDomain{{int64_t{0}, int64_t{1}, int64_t{2}}}},
       {"y", FloatDomain{.min = 0, .max = 1}, {{.parent = "kind", .any_of = {int64_t{1}}}}}});
}

// A record of trials drawn at random, every seventh of which failed.
struct Trained {
  explicit Trained(int count, SearchSpace space = MixedSpace())
      : spec{.objectives = {Minimise("loss")}, .space = std::move(space)}, record(spec) {
    History history(record);
    RandomStream random(1, TrialNumber(0), "test");
    const Cube& cube = record.cube();
    for (int i = 0; i < count; ++i) {
      const Config config =
          cube.Build([&](size_t k) { return cube.FromUniform(k, random.Uniform()); });
      const Point point = cube.Place(config).value();
      double loss = 1;
      for (const double u : point) loss += std::isnan(u) ? 0.1 : (u - 0.3) * (u - 0.3) * 10;
      if (i % 7 == 6) {
        history.End(history.Create(config), TrialState::kFailed);
      } else {
        history.Done(config, std::exp(loss));
      }
    }
    for (uint32_t i = 0; i < record.size(); ++i) best_first.push_back(i);
    std::ranges::sort(best_first, [&](uint32_t a, uint32_t b) { return record.Better(a, b); });
    points.resize(std::ssize(best_first), static_cast<Eigen::Index>(cube.size()));
    for (Eigen::Index i = 0; i < points.rows(); ++i) {
      Point point;
      for (size_t k = 0; k < cube.size(); ++k)
        point.push_back(record.Coordinate(best_first[static_cast<size_t>(i)], k));
      points.row(i) = Encode(cube, point);
    }
  }

  Outcomes outcomes() const { return Outcomes(record, best_first); }
  Process Seen(const Eigen::MatrixXd& pending, const Eigen::MatrixXd& draws) const {
    const Cube& cube = record.cube();
    const FittedParameters fitted =
        FitParameters(cube, points, outcomes(), StartingParameters(cube), 25);
    return Process(cube, fitted, points, outcomes(), pending, draws);
  }
  Process Seen() const { return Seen(Eigen::MatrixXd(0, points.cols()), Eigen::MatrixXd(0, 1)); }

  SweepSpec spec;
  Record record;
  std::vector<uint32_t> best_first;
  Eigen::MatrixXd points;
};

TEST(Matern52, IsItsFormulaAndItsDerivative) {
  for (const size_t count : {1u, 3u, 4u, 9u}) {
    std::vector<double> squares;
    for (size_t i = 0; i < count; ++i) squares.push_back(0.17 * static_cast<double>(i * i));
    std::vector<double> values = squares;
    std::vector<double> slopes(count);
    Matern52(values.data(), slopes.data(), count);
    for (size_t i = 0; i < count; ++i) {
      const double r = std::sqrt(5 * squares[i]);
      EXPECT_NEAR(values[i], (1 + r + r * r / 3) * std::exp(-r), 1e-14);
      EXPECT_NEAR(slopes[i], -5.0 / 6 * (1 + r) * std::exp(-r), 1e-14);
    }
  }
}

TEST(Matern52, IsZeroVeryFarAway) {
  double values[] = {1e5, 1e300, std::numeric_limits<double>::infinity(), 0};
  Matern52(values, nullptr, 4);
  EXPECT_LT(values[0], 1e-280);
  EXPECT_LT(values[1], 1e-280);
  EXPECT_LT(values[2], 1e-280);
  EXPECT_EQ(values[3], 1);
}

// Values by mpmath with 50 digits: log(npdf(u) + u·ncdf(u)) and its derivative.
TEST(LogExpectedImprovement, IsExactInItsTails) {
  struct Known {
    double u, value, slope;
  };
  for (const Known& known : {Known{5, 1.60943792312643139, 0.199999940531220046},
                             Known{0.5, -0.359827683745063819, 0.99092271800410996},
                             Known{0, -0.918938533204672742, 1.25331413731550025},
                             Known{-1, -2.48512102571264134, 1.90427123332969182},
                             Known{-2.9, -7.52084649288787352, 3.4445327294133316},
                             Known{-3.1, -8.22732939357274891, 3.62060426214319292},
                             Known{-10, -55.5531220361223559, 10.1943830334125533},
                             Known{-40, -808.29856835661996, 40.0499066576485182},
                             Known{-200, -20011.5156482597393, 200.009999250131218},
                             Known{-1e8, -5000000000000037.76, 100000000.00000002}}) {
    const auto found = LogExpectedImprovement(known.u);
    EXPECT_NEAR(found.value / known.value, 1, 1e-12) << known.u;
    EXPECT_NEAR(found.slope / known.slope, 1, 1e-12) << known.u;
  }
}

TEST(Evidence, ItsGradientIsThatOfFiniteDifferences) {
  const Trained trained(24);
  const Outcomes outcomes = trained.outcomes();
  const Evidence evidence(trained.record.cube(), trained.points, outcomes);
  for (const double shift : {-1.0, 0.0, 0.8}) {
    Eigen::VectorXd at(8);
    at << 0.2, -0.7, 1.1, 0.4, -3, -1.5, 0.3, -1.2;
    at.array() += shift;
    Eigen::VectorXd gradient;
    evidence(at, gradient);
    for (Eigen::Index i = 0; i < at.size(); ++i) {
      constexpr double kStep = 1e-5;
      Eigen::VectorXd unused;
      Eigen::VectorXd up = at;
      Eigen::VectorXd down = at;
      up[i] += kStep, down[i] -= kStep;
      const double difference = (evidence(up, unused) - evidence(down, unused)) / (2 * kStep);
      EXPECT_NEAR(gradient[i], difference, 1e-5 * (1 + std::abs(difference))) << i;
    }
  }
}

// A record of trials that completed with these losses; NaN is a failed trial.
Outcomes OutcomesOf(const std::vector<double>& losses) {
  const SweepSpec spec{.objectives = {Minimise("loss")},
                       .space = SearchSpace({{"x", FloatDomain{.min = 0, .max = 1}}})};
  Record record(spec);
  History history(record);
  for (const double loss : losses) history.Done(Config{{"x", 0.5}}, loss);
  std::vector<uint32_t> best_first;
  for (uint32_t i = 0; i < record.size(); ++i) best_first.push_back(i);
  std::ranges::sort(best_first, [&](uint32_t a, uint32_t b) { return record.Better(a, b); });
  return Outcomes(record, best_first);
}

TEST(Outcomes, HaveAMeanOfZeroAndADeviationOfOneWhereAllCompleted) {
  const Eigen::VectorXd values = OutcomesOf({3, 1, 2, 8, 1e6}).ValuesFor(0.3).values;
  EXPECT_NEAR(values.mean(), 0, 1e-12);
  EXPECT_NEAR(values.squaredNorm() / 5, 1, 1e-12);
  EXPECT_TRUE(std::ranges::is_sorted(values));
  EXPECT_LT(values[4] - values[3], 2.5) << "a very bad one is not much worse than a bad one";
}

TEST(Outcomes, TheirDerivativesAreThoseOfFiniteDifferences) {
  const Outcomes outcomes = OutcomesOf({3, 1, 2, 8, 1e6, std::nan(""), std::nan("")});
  constexpr double kStep = 1e-6;
  const auto up = outcomes.ValuesFor(0.4 + kStep);
  const auto down = outcomes.ValuesFor(0.4 - kStep);
  const auto at = outcomes.ValuesFor(0.4);
  for (Eigen::Index i = 0; i < 7; ++i) {
    EXPECT_NEAR(at.derivatives[i], (up.values[i] - down.values[i]) / (2 * kStep), 1e-7);
  }
  EXPECT_NEAR(at.log_jacobian_derivative, (up.log_jacobian - down.log_jacobian) / (2 * kStep),
              1e-6);
}

TEST(Outcomes, FailedTrialsShareTheLastRank) {
  const Eigen::VectorXd values =
      OutcomesOf({3, 1, 2, std::nan(""), std::nan("")}).ValuesFor(0).values;
  EXPECT_EQ(values[3], values[4]);
  EXPECT_GT(values[3], values[2]);
}

TEST(Outcomes, EqualAndExtremeLossesAreNumbers) {
  EXPECT_TRUE(OutcomesOf({4, 4, 4}).ValuesFor(1).values.allFinite());
  EXPECT_TRUE(OutcomesOf({7}).ValuesFor(1).values.allFinite());
  for (const double bend : {-7.0, 0.0, 9.0}) {
    EXPECT_TRUE(OutcomesOf({1e300, -1e300, 1.7e308, 0, 1e-300}).ValuesFor(bend).values.allFinite());
    EXPECT_TRUE(OutcomesOf({1e-300, 2e-300, 5e-324}).ValuesFor(bend).values.allFinite());
    EXPECT_TRUE(OutcomesOf({1, 1, 1, 1, 2}).ValuesFor(bend).values.allFinite());
  }
}

TEST(TrustRegion, GrowsWhileItFindsBetterOnesAndShrinksWhileItDoesNot) {
  std::vector<double> losses{9, 8, 7};
  EXPECT_EQ(TrustRegionSide(losses, 20), 1.6);
  losses.insert(losses.end(), 20, 7.0);
  EXPECT_EQ(TrustRegionSide(losses, 20), 0.8);
  losses.insert(losses.end(), 20, std::numeric_limits<double>::infinity());
  EXPECT_EQ(TrustRegionSide(losses, 20), 0.4);
  EXPECT_EQ(TrustRegionSide(std::vector<double>(7 * 4, 1.0), 2), 0.8 / 64);
  EXPECT_EQ(TrustRegionSide(std::vector<double>(8 * 4, 1.0), 2), 0.8) << "it begins again";
  EXPECT_EQ(TrustRegionSide({}, 20), 0.8);
}

TEST(TrustRegion, HasTheRatiosOfTheLengthscalesAndStaysWithinTheCube) {
  const double absent = std::nan("");
  const Box box = TrustRegion({0.5, 0.5, 0.9, absent}, {0.1, 0.4, 0.2, 0.2}, 0.2);
  EXPECT_NEAR(box.high[1] - box.low[1], 4 * (box.high[0] - box.low[0]), 1e-12);
  EXPECT_NEAR(box.high[0] - box.low[0], 0.1, 1e-12);
  EXPECT_EQ(box.high[2], 1);
  EXPECT_EQ(box.low[3], 0);
  EXPECT_EQ(box.high[3], 1);
}

TEST(Process, IsThePosteriorOfADirectComputation) {
  const Trained trained(20);
  const Cube& cube = trained.record.cube();
  const FittedParameters fitted{
      {Eigen::VectorXd::Constant(4, -0.3), std::log(1e-3), std::log(0.2), std::log(0.1)}, 0.5};
  const Eigen::MatrixXd& points = trained.points;
  const Process process(cube, fitted, points, trained.outcomes(), Eigen::MatrixXd(0, 4),
                        Eigen::MatrixXd(0, 1));
  const auto covariance = [&](const Eigen::RowVectorXd& a, const Eigen::RowVectorXd& b) {
    double square = 0;
    double product = 1;
    for (Eigen::Index k = 0; k < 4; ++k) {
      const bool listed = cube.dimensions()[static_cast<size_t>(k)].kind == Cube::Kind::kChoice;
      const double apart = listed ? (a[k] != b[k] ? 1 : 0) : (a[k] - b[k]) * (a[k] - b[k]);
      square += apart * std::exp(0.6);
      if (!listed) product += (2 * a[k] - 1) * (2 * b[k] - 1) / 3;
    }
    const double r = std::sqrt(5 * square);
    const auto matern = [](double at) { return (1 + at + at * at / 3) * std::exp(-at); };
    return matern(r) + 0.1 * matern(15 * r) + 1 + 0.2 * product * product;
  };
  const Eigen::VectorXd values = trained.outcomes().ValuesFor(0.5).values;
  Eigen::MatrixXd all(20, 20);
  for (Eigen::Index i = 0; i < 20; ++i) {
    for (Eigen::Index j = 0; j < 20; ++j) {
      all(i, j) = covariance(points.row(i), points.row(j)) + (i == j ? 1e-3 : 0);
    }
  }
  const Eigen::MatrixXd inverse = all.inverse();
  const double scale = (2 + values.dot(inverse * values) / 2) / (2 + 10);
  Eigen::RowVectorXd at(4);
  at << 0.45, 0.5, 1, 0.8;
  Eigen::VectorXd with(20);
  for (Eigen::Index i = 0; i < 20; ++i) with[i] = covariance(points.row(i), at);
  const auto found = process.Predict(at);
  EXPECT_NEAR(found.means[0], with.dot(inverse * values), 1e-8);
  EXPECT_NEAR(found.variance, scale * (covariance(at, at) - with.dot(inverse * with)), 1e-8);
}

Eigen::RowVectorXd Row(double x) {
  Eigen::RowVectorXd at(4);
  at << x, 0.37, 1, 0.62;
  return at;
}

// By the numbers of a mixed space.
void ExpectTheGradientOfFiniteDifferences(const Acquisition& acquisition,
                                          const Eigen::RowVectorXd& at) {
  const std::vector<size_t> dimensions{0, 1, 3};
  Eigen::VectorXd gradient;
  EXPECT_NEAR(acquisition.LogImprovement(at, dimensions, gradient),
              acquisition.LogImprovements(at)[0], 1e-9);
  for (size_t i = 0; i < dimensions.size(); ++i) {
    constexpr double kStep = 1e-6;
    Eigen::RowVectorXd up = at;
    Eigen::RowVectorXd down = at;
    up[static_cast<Eigen::Index>(dimensions[i])] += kStep;
    down[static_cast<Eigen::Index>(dimensions[i])] -= kStep;
    const double difference =
        (acquisition.LogImprovements(up)[0] - acquisition.LogImprovements(down)[0]) / (2 * kStep);
    EXPECT_NEAR(gradient[static_cast<Eigen::Index>(i)], difference,
                1e-4 * (1 + std::abs(difference)));
  }
}

struct TwoPending {
  Eigen::MatrixXd points{{0.2, 0.5, 1, 0.8}, {0.9, 0.1, 0, 0.5}};
  Eigen::MatrixXd draws{{0.3, -1, 2}, {-0.4, 1, 0.2}};
};

TEST(Process, TheGradientOfItsImprovementIsThatOfFiniteDifferences) {
  const TwoPending pending;
  const Trained trained(24);
  ExpectTheGradientOfFiniteDifferences(trained.Seen(pending.points, pending.draws), Row(0.41));
}

TEST(Process, AvoidsPendingPoints) {
  const Trained trained(24);
  Eigen::MatrixXd pending(1, 4);
  pending << 0.31, 0.28, 0, 0.5;
  Eigen::MatrixXd draws(1, 4);
  draws << -1.2, -0.3, 0.4, 1.1;
  const double alone = trained.Seen().LogImprovements(pending)[0];
  EXPECT_LT(trained.Seen(pending, draws).LogImprovements(pending)[0], alone - 1);
}

TEST(Process, ManyPointsAtOnePlaceAndExtremeScalesAreFactorised) {
  const Trained trained(60, SearchSpace({{"n", IntDomain{.min = 1, .max = 2}}}));
  const FittedParameters smooth{{Eigen::VectorXd::Constant(1, 8), -40, 7, -30}, 0};
  const Process process(trained.record.cube(), smooth, trained.points, trained.outcomes(),
                        Eigen::MatrixXd(0, 1), Eigen::MatrixXd(0, 1));
  EXPECT_TRUE(std::isfinite(process.LogImprovements(trained.points)[0]));
}

// ---- several objectives --------------------------------------------------------------------

// The number of boxes that contain each of many points. The corner is (1, …, 1).
std::vector<int> BoxesThatHold(const UndominatedRegion& open, const Eigen::MatrixXd& at) {
  std::vector<int> holds(static_cast<size_t>(at.rows()), 0);
  const size_t objectives = open.edges.size();
  for (Eigen::Index i = 0; i < at.rows(); ++i) {
    for (size_t box = 0; box < open.boxes.size(); box += objectives) {
      bool inside = true;
      for (size_t k = 0; k < objectives; ++k) {
        const auto& edges = open.edges[k];
        const auto [low, high] = open.boxes[box + k];
        const double value = at(i, static_cast<Eigen::Index>(k));
        inside = inside && edges[low] <= value && value < edges[high];
      }
      holds[static_cast<size_t>(i)] += inside ? 1 : 0;
    }
  }
  return holds;
}

Eigen::MatrixXd Uniform(Eigen::Index rows, Eigen::Index columns, RandomStream& random) {
  Eigen::MatrixXd drawn(rows, columns);
  for (double& value : drawn.reshaped()) value = random.Uniform();
  return drawn;
}

TEST(UndominatedRegion, BoxesCoverEachUndominatedPointOnce) {
  for (Eigen::Index objectives = 2; objectives <= 5; ++objectives) {
    RandomStream random(7, TrialNumber(static_cast<uint32_t>(objectives)), "test");
    Eigen::MatrixXd points = Uniform(6, objectives, random);
    points.row(5) = points.row(2);  // twice
    points(4, 0) = points(1, 0);    // one edge of two points
    const UndominatedRegion open = DecomposeUndominated(points, Eigen::VectorXd::Ones(objectives));
    const Eigen::MatrixXd at = Uniform(2000, objectives, random);
    const std::vector<int> holds = BoxesThatHold(open, at);
    for (Eigen::Index i = 0; i < at.rows(); ++i) {
      bool dominated = false;
      for (Eigen::Index p = 0; p < points.rows(); ++p) {
        dominated = dominated || (points.row(p).array() <= at.row(i).array()).all();
      }
      ASSERT_EQ(holds[static_cast<size_t>(i)], dominated ? 0 : 1) << objectives << " objectives";
    }
  }
}

TEST(UndominatedRegion, TwoPointsWithTwoObjectivesGiveThreeBoxes) {
  const UndominatedRegion open =
      DecomposeUndominated(Eigen::MatrixXd{{0.2, 0.6}, {0.5, 0.1}}, Eigen::VectorXd::Ones(2));
  EXPECT_EQ(open.boxes.size(), 3u * 2);
}

// Processes of several objectives with the same points.
struct TrainedForTwo {
  Trained first{24};
  std::vector<Process> Seen(const Eigen::MatrixXd& pending, const Eigen::MatrixXd& draws) const {
    std::vector<Process> objectives{first.Seen(pending, draws)};
    const Cube& cube = first.record.cube();
    const FittedParameters other{{Eigen::VectorXd::Constant(4, -0.3), -6, 1, -8}, 0.4};
    std::vector<uint32_t> shuffled = first.best_first;
    std::ranges::reverse(shuffled);  // small where the first is large
    objectives.emplace_back(cube, other, first.points, Outcomes(first.record, shuffled), pending,
                            -draws);
    return objectives;
  }
};

TEST(HypervolumeImprovement, ItsGradientIsThatOfFiniteDifferences) {
  const TwoPending pending;
  const TrainedForTwo trained;
  const HypervolumeImprovement improvement(trained.Seen(pending.points, pending.draws));
  for (const double x : {0.05, 0.41, 0.97})
    ExpectTheGradientOfFiniteDifferences(improvement, Row(x));
}

// Draws from the predictions, and averages the volume that each draw adds to the front.
TEST(HypervolumeImprovement, IsTheMeanVolumeThatDrawsAdd) {
  const TrainedForTwo trained;
  const std::vector<Process> objectives =
      trained.Seen(Eigen::MatrixXd(0, 4), Eigen::MatrixXd(0, 1));
  const Eigen::RowVectorXd at = Row(0.41);
  const Eigen::Index count = objectives[0].means().rows();
  Eigen::MatrixXd points(count, 2);
  for (Eigen::Index k = 0; k < 2; ++k) points.col(k) = objectives[static_cast<size_t>(k)].means();
  std::vector<Eigen::Index> front;
  for (Eigen::Index i = 0; i < count; ++i) {
    bool dominated = false;
    for (Eigen::Index j = 0; j < count; ++j) {
      dominated = dominated || (points.row(j).array() < points.row(i).array()).all();
    }
    if (!dominated) front.push_back(i);
  }
  const Eigen::MatrixXd best = points(front, Eigen::all);
  const Eigen::RowVectorXd worst = best.colwise().maxCoeff();
  const Eigen::RowVectorXd corner = 2 * worst - best.colwise().minCoeff();
  const auto volume = [&](const Eigen::MatrixXd& of) {
    std::vector<Point> scaled;  // to the corner at (1.1, 1.1) of Hypervolume()
    for (Eigen::Index i = 0; i < of.rows(); ++i) {
      if ((of.row(i).array() < corner.array()).all())
        scaled.push_back({1.1 - (corner[0] - of(i, 0)), 1.1 - (corner[1] - of(i, 1))});
    }
    std::ranges::sort(scaled);
    std::vector<Point> kept;
    for (const Point& point : scaled) {
      if (kept.empty() || point[1] < kept.back()[1]) kept.push_back(point);
    }
    return kept.empty() ? 0 : Hypervolume(kept);
  };
  RandomStream random(3, TrialNumber(0), "test");
  Eigen::MatrixXd more(best.rows() + 1, 2);
  more.topRows(best.rows()) = best;
  double sum = 0;
  constexpr int kDraws = 40'000;
  for (int i = 0; i < kDraws; ++i) {
    for (Eigen::Index k = 0; k < 2; ++k) {
      const auto known = objectives[static_cast<size_t>(k)].Predict(at);
      more(best.rows(), k) = known.means[0] + std::sqrt(known.variance) * StandardNormal(random);
    }
    sum += volume(more) - volume(best);
  }
  const HypervolumeImprovement improvement(objectives);
  EXPECT_NEAR(improvement.LogImprovements(at)[0], std::log(sum / kDraws), 0.03);
}

TEST(HypervolumeImprovement, IsFiniteForManyObjectives) {
  const TrainedForTwo trained;
  const std::vector<Process> two = trained.Seen(Eigen::MatrixXd(0, 4), Eigen::MatrixXd(0, 1));
  std::vector<Process> seven{two[0], two[1], two[0], two[1], two[0], two[1], two[0]};
  const HypervolumeImprovement improvement(std::move(seven));
  const Eigen::VectorXd logs = improvement.LogImprovements(trained.first.points);
  EXPECT_TRUE(logs.allFinite()) << logs;
}

TEST(Descend, FindsTheMinimumWithinBounds) {
  const auto bowl = [](const Eigen::VectorXd& at, Eigen::VectorXd& gradient) {
    const Eigen::VectorXd from = at - Eigen::VectorXd{{0.25, 2.0}};
    gradient = 2 * from;
    return from.squaredNorm();
  };
  Eigen::VectorXd at{{0.9, 0.1}};
  EXPECT_NEAR(Descend(bowl, Eigen::VectorXd::Zero(2), Eigen::VectorXd::Ones(2), 50, at), 1, 1e-6);
  EXPECT_NEAR(at[0], 0.25, 1e-3);
  EXPECT_NEAR(at[1], 1, 1e-12);
}

}  // namespace
}  // namespace attune::searchers
