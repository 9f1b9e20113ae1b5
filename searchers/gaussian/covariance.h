#pragma once

#include <cstddef>
#include <vector>

#include <Eigen/Core>

#include "searchers/model/cube.h"

namespace attune::searchers {

// Points as a covariance compares them: a column a dimension, a row a point. An absent number
// counts as the middle of its range, so that it has no say, an absent listed value as one more of
// the list.
Eigen::RowVectorXd Encoded(const Cube& cube, const Point& point);

// What a covariance hangs on, in logarithms: a lengthscale a dimension, in units of its range; then
// the variances of the noise, the trend and the ripple, beside that of the rest, which is 1.
struct Hyperparameters {
  Eigen::VectorXd lengthscales;
  double noise = 0;
  double trend = 0;
  double ripple = 0;
};

// The covariance of a loss at two points, but for its scale: Matérn 5/2 with a lengthscale a
// dimension, a constant, and a trend, the square of a scalar product, which stands for a parabola
// whichever way it lies. Listed values differ or do not (Hamming distance).
class Covariance {
 public:
  // `cube` is referred to from then on.
  Covariance(const Cube& cube, const Hyperparameters& hyperparameters);

  // Of each of `points` with the point: its values, and, where wanted, their gradient's factors,
  // for Gradient.
  void With(const Eigen::MatrixXd& points, const Eigen::RowVectorXd& at, Eigen::VectorXd& values,
            Eigen::VectorXd* slopes) const;
  double Variance(const Eigen::RowVectorXd& at) const;
  double Lengthscale(size_t dimension) const;  // in units of the range

  // Of the sum of weights · covariances with `points`, by a number of `at`. REQUIRES: the dimension
  // is no list; slopes of With.
  double Gradient(const Eigen::MatrixXd& points, const Eigen::RowVectorXd& at,
                  const Eigen::VectorXd& slopes, const Eigen::VectorXd& weights,
                  size_t dimension) const;
  double VarianceGradient(const Eigen::RowVectorXd& at, size_t dimension) const;

  // Squared distances of all pairs of points below the diagonal, column after column, a column of
  // the result a dimension; and the trend's covariance of all pairs before its variance.
  static Eigen::MatrixXd Distances(const Cube& cube, const Eigen::MatrixXd& points);
  static Eigen::MatrixXd Trend(const Cube& cube, const Eigen::MatrixXd& points);

  static constexpr double kConstant = 1;  // the variance of a constant

  // The covariances of the Matérn parts of squared distances, which `values` holds before; and
  // their derivatives by these, and the covariances of a ripple of variance 1, where not null.
  static void Matern(Eigen::VectorXd& values, double ripple, Eigen::VectorXd* slopes,
                     Eigen::VectorXd* ripples);

 private:
  const Cube& cube_;
  Eigen::VectorXd weights_;  // of squared distances
  double trend_;
  double ripple_;
};

}  // namespace attune::searchers
