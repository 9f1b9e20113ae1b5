#include "searchers/gaussian/hypervolume.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "core/base/elementary.h"
#include "core/base/numbers.h"
#include "searchers/gaussian/improvement.h"

namespace attune::searchers {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

constexpr double kThin = 1e-9;        // minimum side; values have a deviation of about 1
constexpr double kLeastExtent = 0.1;  // used if all points are equal

// ---- the front -----------------------------------------------------------------------------

bool Dominates(const MatrixXd& points, Index a, Index b) {
  return (points.row(a).array() <= points.row(b).array()).all() &&
         (points.row(a).array() < points.row(b).array()).any();
}

MatrixXd Rows(const MatrixXd& points, const std::vector<Index>& indices) {
  return points(indices, Eigen::all);
}

// The indices of the points on the front. Among equal points only the first is on it.
std::vector<Index> FrontOf(const MatrixXd& points) {
  std::vector<Index> front;
  for (Index i = 0; i < points.rows(); ++i) {
    const bool is_covered = std::ranges::any_of(front, [&](Index other) {
      return (points.row(other).array() <= points.row(i).array()).all();
    });
    if (is_covered) continue;
    std::erase_if(front, [&](Index other) { return Dominates(points, i, other); });
    front.push_back(i);
  }
  return front;
}

VectorXd ExtentOf(const MatrixXd& points) {
  return (points.colwise().maxCoeff() - points.colwise().minCoeff()).transpose();
}

// The largest number of points on a front that gives at most kMostBoxes boxes.
size_t MostPoints(size_t objectives) {
  const auto boxes = [&](double points) {
    double count = 1;
    for (size_t i = 1; i < objectives; ++i) {
      count *= (points + static_cast<double>(i)) / static_cast<double>(i);
    }
    return count;
  };
  size_t points = 1;
  while (boxes(static_cast<double>(points + 1)) <=
         static_cast<double>(HypervolumeImprovement::kMostBoxes)) {
    ++points;
  }
  return points;
}

// Chooses `count` points. The first is the best of the first objective, and each further one is the
// farthest from those before it.
MatrixXd ChooseFarApart(const MatrixXd& front, size_t count) {
  if (front.rows() <= static_cast<Index>(count)) return front;
  const RowVectorXd unit = ExtentOf(front).transpose().cwiseMax(kThin).cwiseInverse();
  std::vector<Index> chosen;
  VectorXd distance = VectorXd::Constant(front.rows(), kInfinity);
  Index next = 0;
  front.col(0).minCoeff(&next);
  while (chosen.size() < count) {
    chosen.push_back(next);
    for (Index i = 0; i < front.rows(); ++i) {
      const double away = ((front.row(i) - front.row(next)).array() * unit.array()).square().sum();
      distance[i] = std::min(distance[i], away);
    }
    distance.maxCoeff(&next);
  }
  return Rows(front, chosen);
}

// ---- the undominated region ----------------------------------------------------------------

class BoxCutter {
 public:
  BoxCutter(const MatrixXd& points, const VectorXd& corner)
      : points_(points), sides_(corner.size()) {
    for (Index k = 0; k < corner.size(); ++k) {
      std::vector<double> values(points.rows());
      for (Index i = 0; i < points.rows(); ++i) values[static_cast<size_t>(i)] = points(i, k);
      std::ranges::sort(values);
      std::vector<double>& edges = region_.edges.emplace_back(1, -kInfinity);
      for (const double value : values) {
        if (value - edges.back() > kThin && corner[k] - value > kThin) edges.push_back(value);
      }
      edges.push_back(corner[k]);
    }
    std::vector<Index> all(static_cast<size_t>(points.rows()));
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Index>(i);
    Cut(all, corner.size() - 1);
  }

  UndominatedRegion Take() { return std::move(region_); }

 private:
  // The index of the edge at the point's coordinate.
  uint32_t EdgeOf(Index point, Index k) const {
    const std::vector<double>& edges = region_.edges[static_cast<size_t>(k)];
    const auto above = std::ranges::upper_bound(edges, points_(point, k) + kThin / 2);
    return static_cast<uint32_t>(std::min(above - edges.begin(), std::ssize(edges)) - 1);
  }

  // Adds the boxes that these points do not dominate in the objectives up to `k`.
  void Cut(const std::vector<Index>& points, Index k) {
    const auto last = static_cast<uint32_t>(region_.edges[static_cast<size_t>(k)].size() - 1);
    std::vector<std::pair<uint32_t, Index>> by_edge;
    for (const Index point : points) by_edge.emplace_back(EdgeOf(point, k), point);
    std::ranges::sort(by_edge);
    auto& side = sides_[static_cast<size_t>(k)];
    if (k == 0) {
      side = {0, by_edge.empty() ? last : by_edge.front().first};
      if (side.low < side.high)
        region_.boxes.insert(region_.boxes.end(), sides_.begin(), sides_.end());
      return;
    }
    // With each edge, more points can dominate.
    std::vector<Index> below;
    uint32_t low = 0;
    for (size_t i = 0; i <= by_edge.size(); ++i) {
      const uint32_t high = i < by_edge.size() ? by_edge[i].first : last;
      if (low < high) {
        side = {low, high};
        Cut(below, k - 1);
        low = high;
      }
      if (i < by_edge.size()) below.push_back(by_edge[i].second);
    }
  }

  const MatrixXd& points_;
  UndominatedRegion region_;
  std::vector<UndominatedRegion::Side> sides_;
};

// ---- the improvement of a box --------------------------------------------------------------

// log E max(edge - y, 0) for a normal y, and its derivatives by the mean and the deviation.
struct EdgeImprovement {
  double log = -kInfinity;
  double by_mean = 0;
  double by_deviation = 0;
};

EdgeImprovement ImprovementBelow(double edge, double mean, double deviation) {
  if (edge == -kInfinity) return {};
  const double u = (edge - mean) / deviation;
  const LogImprovement improvement = LogExpectedImprovement(u);
  return {Log(deviation) + improvement.value, -improvement.slope / deviation,
          (1 - u * improvement.slope) / deviation};
}

// log(1 - exp(-x)) for x > 0.
double LogOneMinusExp(double x) { return x < 1e-5 ? Log(x) - x / 2 : Log(1 - Exp(-x)); }

// log(exp(high) - exp(low)), and its derivatives.
EdgeImprovement ImprovementBetween(const EdgeImprovement& low, const EdgeImprovement& high) {
  if (low.log == -kInfinity) return high;
  const double apart = high.log - low.log;
  if (!(apart > 0)) return {};  // the difference is smaller than the rounding error
  const double log = high.log + LogOneMinusExp(apart);
  const double weight_high = Exp(high.log - log);
  const double weight_low = Exp(low.log - log);
  return {log, weight_high * high.by_mean - weight_low * low.by_mean,
          weight_high * high.by_deviation - weight_low * low.by_deviation};
}

}  // namespace

UndominatedRegion DecomposeUndominated(const MatrixXd& points, const VectorXd& corner) {
  return BoxCutter(points, corner).Take();
}

HypervolumeImprovement::HypervolumeImprovement(std::vector<Process> objectives)
    : objectives_(std::move(objectives)) {
  ATTUNE_CHECK(objectives_.size() > 1);
  const auto count = static_cast<Index>(objectives_.size());
  const MatrixXd& first = objectives_[0].means();
  MatrixXd points(first.rows(), count);
  for (Index guess = 0; guess < first.cols(); ++guess) {
    for (Index k = 0; k < count; ++k) {
      points.col(k) = objectives_[static_cast<size_t>(k)].means().col(guess);
    }
    const MatrixXd front = Rows(points, FrontOf(points));
    const VectorXd extent = front.rows() > 1 ? ExtentOf(front) : ExtentOf(points);
    const VectorXd corner = front.colwise().maxCoeff().transpose() + extent.cwiseMax(kLeastExtent);
    regions_.push_back(
        DecomposeUndominated(ChooseFarApart(front, MostPoints(objectives_.size())), corner));
  }
}

HypervolumeImprovement::ExpectedImprovement HypervolumeImprovement::ComputeImprovement(
    const MatrixXd& means, const VectorXd& variances) const {
  const Index count = means.rows();
  const Index guesses = means.cols();
  const VectorXd deviations = variances.cwiseSqrt();
  ExpectedImprovement expected{.by_means = MatrixXd::Zero(count, guesses),
                               .by_variances = VectorXd::Zero(count)};
  MatrixXd by_deviations = MatrixXd::Zero(count, guesses);
  VectorXd logs(guesses);
  std::vector<std::vector<EdgeImprovement>> below(static_cast<size_t>(count));
  std::vector<EdgeImprovement> sides(static_cast<size_t>(count));
  for (Index guess = 0; guess < guesses; ++guess) {
    const UndominatedRegion& region = regions_[static_cast<size_t>(guess)];
    for (Index k = 0; k < count; ++k) {
      auto& edges = below[static_cast<size_t>(k)];
      edges.clear();
      for (const double edge : region.edges[static_cast<size_t>(k)]) {
        edges.push_back(ImprovementBelow(edge, means(k, guess), deviations[k]));
      }
    }
    // A sum of exponentials, relative to the largest one so far.
    double most = -kInfinity;
    double sum = 0;
    auto by_mean = expected.by_means.col(guess);
    auto by_deviation = by_deviations.col(guess);
    for (size_t box = 0; box < region.boxes.size(); box += sides.size()) {
      double log = 0;
      for (size_t k = 0; k < sides.size(); ++k) {
        const UndominatedRegion::Side& side = region.boxes[box + k];
        sides[k] = ImprovementBetween(below[k][side.low], below[k][side.high]);
        log += sides[k].log;
      }
      if (log == -kInfinity) continue;
      if (log > most) {
        const double shrink = Exp(most - log);
        sum *= shrink;
        by_mean *= shrink;
        by_deviation *= shrink;
        most = log;
      }
      const double weight = Exp(log - most);
      sum += weight;
      for (size_t k = 0; k < sides.size(); ++k) {
        by_mean[static_cast<Index>(k)] += weight * sides[k].by_mean;
        by_deviation[static_cast<Index>(k)] += weight * sides[k].by_deviation;
      }
    }
    by_mean /= sum;
    by_deviation /= sum;
    logs[guess] = most + Log(sum);
  }
  const double most = logs.maxCoeff();
  double sum = 0;
  for (Index guess = 0; guess < guesses; ++guess) sum += logs[guess] = Exp(logs[guess] - most);
  expected.log = most + Log(sum / static_cast<double>(guesses));
  expected.by_means *= (logs / sum).asDiagonal();
  expected.by_variances = (by_deviations * (logs / sum)).cwiseQuotient(2 * deviations);
  return expected;
}

VectorXd HypervolumeImprovement::LogImprovements(const MatrixXd& at) const {
  std::vector<Process::Predictions> predictions;
  for (const Process& objective : objectives_) predictions.push_back(objective.PredictEach(at));
  MatrixXd means(std::ssize(objectives_), predictions[0].means.rows());
  VectorXd variances(means.rows());
  VectorXd logs(at.rows());
  for (Index i = 0; i < at.rows(); ++i) {
    for (Index k = 0; k < means.rows(); ++k) {
      means.row(k) = predictions[static_cast<size_t>(k)].means.col(i);
      variances[k] = predictions[static_cast<size_t>(k)].variances[i];
    }
    logs[i] = ComputeImprovement(means, variances).log;
  }
  return logs;
}

double HypervolumeImprovement::LogImprovement(const RowVectorXd& at,
                                              const std::vector<size_t>& dimensions,
                                              VectorXd& gradient) const {
  std::vector<Process::Place> places;
  for (const Process& objective : objectives_) places.push_back(objective.PredictForGradient(at));
  MatrixXd means(std::ssize(objectives_), places[0].prediction.means.size());
  VectorXd variances(means.rows());
  for (Index k = 0; k < means.rows(); ++k) {
    means.row(k) = places[static_cast<size_t>(k)].prediction.means;
    variances[k] = places[static_cast<size_t>(k)].prediction.variance;
  }
  const ExpectedImprovement expected = ComputeImprovement(means, variances);
  gradient = VectorXd::Zero(std::ssize(dimensions));
  for (Index k = 0; k < means.rows(); ++k) {
    const auto objective = static_cast<size_t>(k);
    gradient += objectives_[objective].Gradient(std::move(places[objective]),
                                                expected.by_means.row(k).transpose(),
                                                expected.by_variances[k], dimensions);
  }
  return expected.log;
}

double HypervolumeImprovement::Lengthscale(size_t dimension) const {
  double shortest = kInfinity;
  for (const Process& objective : objectives_) {
    shortest = std::min(shortest, objective.Lengthscale(dimension));
  }
  return shortest;
}

}  // namespace attune::searchers
