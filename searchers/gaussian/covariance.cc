#include "searchers/gaussian/covariance.h"

#include <cmath>

#include "core/base/elementary.h"
#include "searchers/gaussian/matern.h"

namespace attune::searchers {
namespace {

constexpr double kRippleScale = 15 * 15;  // factor of squared distances

bool IsListed(const Cube& cube, size_t dimension) {
  return cube.dimensions()[dimension].kind == Cube::Kind::kChoice;
}

// The number of dimensions that are not lists; at least 1.
double CountNumbers(const Cube& cube) {
  double count = 0;
  for (size_t k = 0; k < cube.size(); ++k) count += IsListed(cube, k) ? 0 : 1;
  return std::max(count, 1.0);
}

// 1 + the scalar product of `at` with each point. Coordinates are mapped to [-1, 1], and the
// product is divided by their number.
Eigen::VectorXd Products(const Cube& cube, const Eigen::MatrixXd& points,
                         const Eigen::RowVectorXd& at) {
  Eigen::VectorXd sum = Eigen::VectorXd::Ones(points.rows());
  const double scale = 1 / CountNumbers(cube);
  for (size_t k = 0; k < cube.size(); ++k) {
    if (IsListed(cube, k)) continue;
    const auto dimension = static_cast<Eigen::Index>(k);
    sum.array() += (points.col(dimension).array() * 2 - 1) * ((2 * at[dimension] - 1) * scale);
  }
  return sum;
}

}  // namespace

Eigen::RowVectorXd Encode(const Cube& cube, const Point& point) {
  Eigen::RowVectorXd row(static_cast<Eigen::Index>(point.size()));
  for (size_t k = 0; k < point.size(); ++k) {
    const double absent = IsListed(cube, k) ? -1 : 0.5;
    row[static_cast<Eigen::Index>(k)] = std::isnan(point[k]) ? absent : point[k];
  }
  return row;
}

Covariance::Covariance(const Cube& cube, const Hyperparameters& hyperparameters)
    : cube_(cube),
      weights_(hyperparameters.lengthscales.size()),
      trend_(Exp(hyperparameters.trend)),
      ripple_(Exp(hyperparameters.ripple)) {
  for (Eigen::Index k = 0; k < weights_.size(); ++k) {
    weights_[k] = Exp(-2 * hyperparameters.lengthscales[k]);
  }
}

void Covariance::Matern(Eigen::VectorXd& values, double ripple, Eigen::VectorXd* slopes,
                        Eigen::VectorXd* ripples) {
  const auto count = static_cast<size_t>(values.size());
  Eigen::VectorXd near = values * kRippleScale;
  Eigen::VectorXd near_slopes;
  if (slopes != nullptr) {
    slopes->resize(values.size());
    near_slopes.resize(values.size());
  }
  Matern52(values.data(), slopes != nullptr ? slopes->data() : nullptr, count);
  Matern52(near.data(), slopes != nullptr ? near_slopes.data() : nullptr, count);
  values += ripple * near;
  if (slopes != nullptr) *slopes += (ripple * kRippleScale) * near_slopes;
  if (ripples != nullptr) *ripples = std::move(near);
}

void Covariance::ComputeColumn(const Eigen::MatrixXd& points, const Eigen::RowVectorXd& at,
                               Eigen::VectorXd& values, Eigen::VectorXd* slopes) const {
  values.setZero(points.rows());
  for (size_t i = 0; i < cube_.size(); ++i) {
    const auto k = static_cast<Eigen::Index>(i);
    if (IsListed(cube_, i)) {
      values.array() += (points.col(k).array() != at[k]).cast<double>() * weights_[k];
    } else {
      values.array() += (points.col(k).array() - at[k]).square() * weights_[k];
    }
  }
  Matern(values, ripple_, slopes, nullptr);
  values.array() += kConstant + trend_ * Products(cube_, points, at).array().square();
}

double Covariance::Variance(const Eigen::RowVectorXd& at) const {
  const double product = Products(cube_, at, at)[0];
  return 1 + ripple_ + kConstant + trend_ * product * product;
}

double Covariance::Lengthscale(size_t dimension) const {
  return 1 / std::sqrt(weights_[static_cast<Eigen::Index>(dimension)]);
}

double Covariance::Gradient(const Eigen::MatrixXd& points, const Eigen::RowVectorXd& at,
                            const Eigen::VectorXd& slopes, const Eigen::VectorXd& weights,
                            size_t dimension) const {
  const auto k = static_cast<Eigen::Index>(dimension);
  const double near =
      (weights.array() * slopes.array() * (at[k] - points.col(k).array())).sum() * 2 * weights_[k];
  const double trend =
      (weights.array() * Products(cube_, points, at).array() * (points.col(k).array() * 2 - 1))
          .sum();
  return near + trend * trend_ * 4 / CountNumbers(cube_);
}

double Covariance::VarianceGradient(const Eigen::RowVectorXd& at, size_t dimension) const {
  const double product = Products(cube_, at, at)[0];
  return trend_ * 8 * product * (2 * at[static_cast<Eigen::Index>(dimension)] - 1) /
         CountNumbers(cube_);
}

Eigen::MatrixXd Covariance::Distances(const Cube& cube, const Eigen::MatrixXd& points) {
  const Eigen::Index n = points.rows();
  Eigen::MatrixXd distances(n * (n - 1) / 2, points.cols());
  for (size_t i = 0; i < cube.size(); ++i) {
    const auto k = static_cast<Eigen::Index>(i);
    Eigen::Index pair = 0;
    for (Eigen::Index j = 0; j < n; ++j) {
      const Eigen::Index below = n - j - 1;
      const auto others = points.col(k).tail(below).array();
      auto to = distances.col(k).segment(pair, below).array();
      if (IsListed(cube, i)) {
        to = (others != points(j, k)).cast<double>();
      } else {
        to = (others - points(j, k)).square();
      }
      pair += below;
    }
  }
  return distances;
}

Eigen::MatrixXd Covariance::Trend(const Cube& cube, const Eigen::MatrixXd& points) {
  Eigen::MatrixXd trend(points.rows(), points.rows());
  for (Eigen::Index i = 0; i < points.rows(); ++i) {
    trend.col(i) = Products(cube, points, points.row(i)).array().square();
  }
  return trend;
}

}  // namespace attune::searchers
