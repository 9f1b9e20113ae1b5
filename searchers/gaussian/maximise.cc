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

constexpr size_t kDrawn = 96;          // points drawn in the box
constexpr size_t kNear = 64;           // points drawn near good ones
constexpr size_t kClimbs = 3;          // best points from which to climb
constexpr int kClimbEvaluations = 16;  // of one climb over the numbers
constexpr int kRounds = 3;             // maximum rounds of climbing numbers and trying values
constexpr int64_t kFewSteps = 16;      // with more steps, a parameter is climbed like a range
constexpr size_t kMostValues = 16;     // values of a list that are tried
constexpr double kPastEdge = 1e-9;     // distance past an edge, into the next cell

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

  // Makes a point of the space: steps move to the middle of their cells, parameters become absent
  // as conditions require, and new parameters are drawn.
  Point MakeValid(Point point) {
    if (!conditional_) {
      for (size_t k = 0; k < point.size(); ++k) point[k] = cube_.Snap(k, point[k]);
      return point;
    }
    const Config config = cube_.Build([&](size_t k) {
      return std::isnan(point[k]) ? cube_.FromUniform(k, ScaleToBox(k, random_.Uniform()))
                                  : point[k];
    });
    return cube_.Place(config).value();
  }

  Point DrawInBox() {
    Point point(cube_.size());
    for (size_t k = 0; k < point.size(); ++k) {
      point[k] = cube_.FromUniform(k, ScaleToBox(k, random_.Uniform()));
    }
    return MakeValid(std::move(point));
  }

  // Moves some numbers by a random distance, and changes listed values with a small probability.
  Point DrawNear(Point point) {
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
    return MakeValid(std::move(point));
  }

  // Scores the points that are wanted.
  std::vector<ScoredPoint> Score(std::vector<Point> points) const {
    std::erase_if(points, [this](const Point& point) { return !wanted_(point); });
    Eigen::MatrixXd rows(std::ssize(points), static_cast<Eigen::Index>(cube_.size()));
    for (Eigen::Index i = 0; i < rows.rows(); ++i) {
      rows.row(i) = Encode(cube_, points[static_cast<size_t>(i)]);
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
  // Maps a uniform number to the box; for a list, returns it as it is.
  double ScaleToBox(size_t k, double u) const {
    if (cube_.dimensions()[k].kind == Cube::Kind::kChoice) return u;
    return box_.low[k] + u * (box_.high[k] - box_.low[k]);
  }

  bool IsClimbable(size_t k) const {
    const Cube::Dimension& dimension = cube_.dimensions()[k];
    return dimension.kind == Cube::Kind::kRange ||
           (dimension.kind == Cube::Kind::kSteps && dimension.count > kFewSteps);
  }

  bool ClimbNumbers(ScoredPoint& from) {
    std::vector<size_t> numbers;
    for (size_t k = 0; k < cube_.size(); ++k) {
      if (IsClimbable(k) && !std::isnan(from.point[k])) numbers.push_back(k);
    }
    if (numbers.empty()) return false;
    const auto count = static_cast<Eigen::Index>(numbers.size());
    // In units of the lengthscales, so that all numbers change the improvement at a similar rate.
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
    Eigen::RowVectorXd row = Encode(cube_, from.point);
    const auto put = [&](const Eigen::VectorXd& x) {
      for (Eigen::Index i = 0; i < count; ++i) {
        row[static_cast<Eigen::Index>(numbers[static_cast<size_t>(i)])] = x[i] * unit[i];
      }
    };
    const auto loss = [&](const Eigen::VectorXd& x, Eigen::VectorXd& gradient) {
      put(x);
      double value = acquisition_.LogImprovement(row, numbers, gradient);
      if (belief_.prior != nullptr) value += AddBelief(from.point, numbers, row, gradient);
      gradient = -(gradient.array() * unit.array());
      return -value;
    };
    Descend(loss, low, high, kClimbEvaluations, at);
    Point to = from.point;
    for (Eigen::Index i = 0; i < count; ++i) {
      const size_t k = numbers[static_cast<size_t>(i)];
      to[k] = cube_.Snap(k, std::clamp(at[i] * unit[i], box_.low[k], box_.high[k]));
    }
    if (conditional_) to = MakeValid(std::move(to));
    return ReplaceIfBetter(from, {std::move(to)});
  }

  // The term of the belief if these numbers are as in `row`. Adds its derivatives to the gradient.
  double AddBelief(Point point, const std::vector<size_t>& numbers, const Eigen::RowVectorXd& row,
                   Eigen::VectorXd& gradient) const {
    for (const size_t k : numbers) point[k] = row[static_cast<Eigen::Index>(k)];
    const std::vector<double> slope = belief_.prior->Slope(point);
    for (size_t i = 0; i < numbers.size(); ++i)
      gradient[static_cast<Eigen::Index>(i)] += belief_.weight * slope[numbers[i]];
    return belief_.weight * belief_.prior->LogDensity(point);
  }

  // Tries other values of each step and list in turn. Returns whether one was better.
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
        if (conditional_) other = MakeValid(std::move(other));
      }
      better = ReplaceIfBetter(from, std::move(others)) || better;
    }
    return better;
  }

  std::vector<double> ValuesToTry(size_t k, double current) {
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
        const auto [low, high] = cube_.CellAround(k, edge + kPastEdge);
        values.push_back(cube_.Snap(k, (low + high) / 2));
        edge = high;
      }
    } else {
      const auto [low, high] = cube_.CellAround(k, current);
      values = {cube_.Snap(k, low - kPastEdge), cube_.Snap(k, high + kPastEdge)};
    }
    std::erase(values, current);
    return values;
  }

  // Replaces the point by the best of the others if that is better. Returns whether it did.
  bool ReplaceIfBetter(ScoredPoint& from, std::vector<Point> others) const {
    std::vector<ScoredPoint> scored = Score(std::move(others));
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
  for (size_t i = 0; i < kDrawn; ++i) points.push_back(climber.DrawInBox());
  for (size_t i = 0; i < kNear && !good.empty(); ++i) {
    points.push_back(climber.DrawNear(good[i % good.size()]));
  }
  std::vector<ScoredPoint> candidates = climber.Score(std::move(points));
  if (candidates.empty()) return std::nullopt;
  const size_t climbs = std::min(kClimbs, candidates.size());
  std::ranges::partial_sort(candidates, candidates.begin() + static_cast<ptrdiff_t>(climbs),
                            std::ranges::greater{}, &ScoredPoint::log_improvement);
  candidates.resize(climbs);
  for (ScoredPoint& candidate : candidates) climber.Climb(candidate);
  return *std::ranges::max_element(candidates, {}, &ScoredPoint::log_improvement);
}

}  // namespace attune::searchers
