#pragma once

#include <cstddef>
#include <vector>

#include <Eigen/Core>

#include "searchers/model/cube.h"

namespace attune::searchers {

// Encodes a point for a covariance, with one column per dimension. An absent number counts as the
// middle of its range, where the trend ignores it. An absent listed value counts as an additional
// value.
Eigen::RowVectorXd Encode(const Cube& cube, const Point& point);

// Logarithms of the hyperparameters: a lengthscale per dimension, in units of its range; and the
// variances of the noise, the trend and the ripple, relative to the main Matérn part.
struct Hyperparameters {
  Eigen::VectorXd lengthscales;
  double noise = 0;
  double trend = 0;
  double ripple = 0;
};

// The covariance of the loss at two points, without its scale. It is the sum of
//
// - a Matérn 5/2 covariance with one lengthscale per dimension
// - the ripple: a second one with much shorter lengthscales, for rugged losses
// - a constant
// - the trend: the square of a scalar product, which describes a parabola in any direction
//
// The distance between two listed values is 0 or 1 (Hamming distance).
class Covariance {
 public:
  // `cube` must outlive the object.
  Covariance(const Cube& cube, const Hyperparameters& hyperparameters);

  // Computes the covariance of each row of `points` with `at`. If `slopes` is not null, it receives
  // derivatives that Gradient needs.
  void ComputeColumn(const Eigen::MatrixXd& points, const Eigen::RowVectorXd& at,
                     Eigen::VectorXd& values, Eigen::VectorXd* slopes) const;
  double Variance(const Eigen::RowVectorXd& at) const;
  double Lengthscale(size_t dimension) const;  // in units of the range

  // The derivative of the sum of weights · covariances with `points`, by a coordinate of `at`.
  // REQUIRES: the dimension is not a list; `slopes` are from ComputeColumn.
  double Gradient(const Eigen::MatrixXd& points, const Eigen::RowVectorXd& at,
                  const Eigen::VectorXd& slopes, const Eigen::VectorXd& weights,
                  size_t dimension) const;
  double VarianceGradient(const Eigen::RowVectorXd& at, size_t dimension) const;

  // Squared distances of all pairs of points, one column per dimension. The rows are the pairs
  // below the diagonal of a matrix, column by column.
  static Eigen::MatrixXd Distances(const Cube& cube, const Eigen::MatrixXd& points);
  // The covariance of the trend for all pairs of points, with a variance of 1.
  static Eigen::MatrixXd Trend(const Cube& cube, const Eigen::MatrixXd& points);

  static constexpr double kConstant = 1;  // the variance of the constant

  // Replaces the squared distances in `values` by the covariances of the Matérn part and the
  // ripple. `slopes` receives their derivatives by the squared distances, and `ripples` the
  // covariances of a ripple with variance 1, unless null.
  static void Matern(Eigen::VectorXd& values, double ripple, Eigen::VectorXd* slopes,
                     Eigen::VectorXd* ripples);

 private:
  const Cube& cube_;
  Eigen::VectorXd weights_;  // by dimension: 1 over the squared lengthscale
  double trend_;
  double ripple_;
};

}  // namespace attune::searchers
