#include "searchers/gaussian/maximise.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/elementary.h"
#include "searchers/gaussian/covariance.h"
#include "searchers/gaussian/descend.h"
#include "searchers/model/draw.h"

namespace attune::searchers {
namespace {

constexpr size_t kDrawn = 96;          // points in the whole box
constexpr size_t kNear = 64;           // and near good ones
constexpr size_t kClimbs = 3;          // from the best of them
constexpr int kClimbEvaluations = 16;  // of one climb over the numbers
constexpr int kRounds = 3;             // numbers, then values, at most so often
constexpr int64_t kFewSteps = 16;      // are tried one by one; more are climbed like a range
constexpr size_t kMostValues = 16;     // of a list that are tried
constexpr double kOver = 1e-9;         // beyond an edge lies the next cell

class Climber {
 public:
  Climber(const Cube& cube, const Acquisition& acquisition, const Belief& belief, const Box& box,
          const std::function<bool(const Point&)>& wanted, RandomStream& random)
      : cube_(cube),
        acquisition_(acquisition),
        belief_(belief),
        box_(box),
        wanted_(wanted),
        random_(random) {
    for (const Parameter& parameter : cube.space().parameters()) {
      conditional_ = conditional_ || !parameter.when.empty();
    }
  }

  // A point of the space: values in the middle of their cells, what does not exist absent, and
  // what newly exists drawn.
  Point Valid(Point point) {
    if (!conditional_) {
      for (size_t k = 0; k < point.size(); ++k) point[k] = cube_.Snap(k, point[k]);
      return point;
    }
    const Config config = cube_.Build([&](size_t k) {
      return std::isnan(point[k]) ? cube_.FromUniform(k, Within(k, random_.Uniform())) : point[k];
    });
    return cube_.Place(config).value();
  }

  Point Drawn() {
    Point point(cube_.size());
    for (size_t k = 0; k < point.size(); ++k) {
      point[k] = cube_.FromUniform(k, Within(k, random_.Uniform()));
    }
    return Valid(std::move(point));
  }

  // Some numbers moved, by more or less, and now and then another value of a list.
  Point Near(Point point) {
    const double size = Exp(random_.Uniform(Log(0.003), Log(0.3)));
    const auto count = static_cast<double>(point.size());
    const double chance = std::min(1.0, 8 / count);
    for (size_t k = 0; k < point.size(); ++k) {
      const Cube::Dimension& dimension = cube_.dimensions()[k];
      const double move = StandardNormal(random_);
      const double u = random_.Uniform();
      if (std::isnan(point[k])) continue;
      if (dimension.kind == Cube::Kind::kChoice) {
        if (u < 1 / count) point[k] = UniformPlace(static_cast<double>(dimension.count), random_);
      } else if (u < chance) {
        point[k] = std::clamp(point[k] + size * move, box_.low[k], box_.high[k]);
      }
    }
    return Valid(std::move(point));
  }

  // Those that are wanted, with what is expected of them.
  std::vector<ScoredPoint> Scored(std::vector<Point> points) const {
    std::erase_if(points, [this](const Point& point) { return !wanted_(point); });
    Eigen::MatrixXd rows(std::ssize(points), static_cast<Eigen::Index>(cube_.size()));
    for (Eigen::Index i = 0; i < rows.rows(); ++i) {
      rows.row(i) = Encoded(cube_, points[static_cast<size_t>(i)]);
    }
    std::vector<ScoredPoint> scored;
    if (points.empty()) return scored;
    const Eigen::VectorXd logs = acquisition_.LogImprovements(rows);
    for (size_t i = 0; i < points.size(); ++i) {
      const double believed =
          belief_.prior == nullptr ? 0 : belief_.weight * belief_.prior->LogDensity(points[i]);
      scored.push_back({std::move(points[i]), logs[static_cast<Eigen::Index>(i)] + believed});
    }
    return scored;
  }

  void Climb(ScoredPoint& from) {
    for (int round = 0; round < kRounds; ++round) {
      const bool moved = ClimbNumbers(from);
      if (!TryValues(from) || (!moved && round > 0)) break;
    }
  }

 private:
  double Within(size_t k, double u) const {
    if (cube_.dimensions()[k].kind == Cube::Kind::kChoice) return u;
    return box_.low[k] + u * (box_.high[k] - box_.low[k]);
  }

  bool Climbable(size_t k) const {
    const Cube::Dimension& dimension = cube_.dimensions()[k];
    return dimension.kind == Cube::Kind::kRange ||
           (dimension.kind == Cube::Kind::kSteps && dimension.count > kFewSteps);
  }

  bool ClimbNumbers(ScoredPoint& from) {
    std::vector<size_t> numbers;
    for (size_t k = 0; k < cube_.size(); ++k) {
      if (Climbable(k) && !std::isnan(from.point[k])) numbers.push_back(k);
    }
    if (numbers.empty()) return false;
    const auto count = static_cast<Eigen::Index>(numbers.size());
    // In units of the lengthscales, so that each number changes the improvement about as fast.
    Eigen::VectorXd unit(count);
    Eigen::VectorXd at(count);
    Eigen::VectorXd low(count);
    Eigen::VectorXd high(count);
    for (Eigen::Index i = 0; i < count; ++i) {
      const size_t k = numbers[static_cast<size_t>(i)];
      unit[i] = std::min(acquisition_.Lengthscale(k), 1.0);
      at[i] = std::clamp(from.point[k], box_.low[k], box_.high[k]) / unit[i];
      low[i] = box_.low[k] / unit[i];
      high[i] = box_.high[k] / unit[i];
    }
    Eigen::RowVectorXd row = Encoded(cube_, from.point);
    const auto put = [&](const Eigen::VectorXd& x) {
      for (Eigen::Index i = 0; i < count; ++i) {
        row[static_cast<Eigen::Index>(numbers[static_cast<size_t>(i)])] = x[i] * unit[i];
      }
    };
    const auto loss = [&](const Eigen::VectorXd& x, Eigen::VectorXd& gradient) {
      put(x);
      double value = acquisition_.LogImprovement(row, numbers, gradient);
      if (belief_.prior != nullptr) value += Believed(from.point, numbers, row, gradient);
      gradient = -(gradient.array() * unit.array());
      return -value;
    };
    Descend(loss, low, high, kClimbEvaluations, at);
    Point to = from.point;
    for (Eigen::Index i = 0; i < count; ++i) {
      const size_t k = numbers[static_cast<size_t>(i)];
      to[k] = cube_.Snap(k, std::clamp(at[i] * unit[i], box_.low[k], box_.high[k]));
    }
    if (conditional_) to = Valid(std::move(to));
    return Take(from, {std::move(to)});
  }

  // What the belief adds where these numbers are as in `row`, and to the gradient by them.
  double Believed(Point point, const std::vector<size_t>& numbers, const Eigen::RowVectorXd& row,
                  Eigen::VectorXd& gradient) const {
    for (const size_t k : numbers) point[k] = row[static_cast<Eigen::Index>(k)];
    const std::vector<double> slope = belief_.prior->Slope(point);
    for (size_t i = 0; i < numbers.size(); ++i)
      gradient[static_cast<Eigen::Index>(i)] += belief_.weight * slope[numbers[i]];
    return belief_.weight * belief_.prior->LogDensity(point);
  }

  // Each step and list in turn, the others being as they are.
  bool TryValues(ScoredPoint& from) {
    bool better = false;
    for (size_t k = 0; k < cube_.size(); ++k) {
      const Cube::Dimension& dimension = cube_.dimensions()[k];
      if (dimension.kind == Cube::Kind::kRange || dimension.count < 2) continue;
      if (std::isnan(from.point[k])) continue;
      std::vector<Point> others;
      for (const double value : ValuesToTry(k, from.point[k])) {
        Point& other = others.emplace_back(from.point);
        other[k] = value;
        if (conditional_) other = Valid(std::move(other));
      }
      better = Take(from, std::move(others)) || better;
    }
    return better;
  }

  std::vector<double> ValuesToTry(size_t k, double now) {
    const Cube::Dimension& dimension = cube_.dimensions()[k];
    std::vector<double> values;
    if (dimension.kind == Cube::Kind::kChoice) {
      const auto count = static_cast<double>(dimension.count);
      const bool all = dimension.count <= static_cast<int64_t>(kMostValues);
      for (size_t i = 0; i < (all ? static_cast<size_t>(count) : kMostValues); ++i) {
        values.push_back(all ? static_cast<double>(i) : UniformPlace(count, random_));
      }
    } else if (dimension.count <= kFewSteps) {
      for (double edge = 0; std::ssize(values) < dimension.count;) {
        const auto [low, high] = cube_.CellAround(k, edge + kOver);
        values.push_back(cube_.Snap(k, (low + high) / 2));
        edge = high;
      }
    } else {
      const auto [low, high] = cube_.CellAround(k, now);
      values = {cube_.Snap(k, low - kOver), cube_.Snap(k, high + kOver)};
    }
    std::erase(values, now);
    return values;
  }

  // The best of these instead, if it is better.
  bool Take(ScoredPoint& from, std::vector<Point> others) const {
    std::vector<ScoredPoint> scored = Scored(std::move(others));
    const auto best = std::ranges::max_element(scored, {}, &ScoredPoint::log_improvement);
    if (best == scored.end() || !(best->log_improvement > from.log_improvement)) return false;
    from = std::move(*best);
    return true;
  }

  const Cube& cube_;
  const Acquisition& acquisition_;
  const Belief& belief_;
  const Box& box_;
  const std::function<bool(const Point&)>& wanted_;
  RandomStream& random_;
  bool conditional_ = false;
};

}  // namespace

std::optional<ScoredPoint> MaximiseAcquisition(const Cube& cube, const Acquisition& acquisition,
                                       const Belief& belief, const Box& box,
                                       const std::vector<Point>& good,
                                       const std::function<bool(const Point&)>& wanted,
                                       RandomStream& random) {
  Climber climber(cube, acquisition, belief, box, wanted, random);
  std::vector<Point> points;
  for (size_t i = 0; i < kDrawn; ++i) points.push_back(climber.Drawn());
  for (size_t i = 0; i < kNear && !good.empty(); ++i) {
    points.push_back(climber.Near(good[i % good.size()]));
  }
  std::vector<ScoredPoint> candidates = climber.Scored(std::move(points));
  if (candidates.empty()) return std::nullopt;
  const size_t climbs = std::min(kClimbs, candidates.size());
  std::ranges::partial_sort(candidates, candidates.begin() + static_cast<ptrdiff_t>(climbs),
                            std::ranges::greater{}, &ScoredPoint::log_improvement);
  candidates.resize(climbs);
  for (ScoredPoint& candidate : candidates) climber.Climb(candidate);
  return *std::ranges::max_element(candidates, {}, &ScoredPoint::log_improvement);
}

}  // namespace attune::searchers
