#pragma once

#include <vector>

#include <Eigen/Core>

#include "searchers/gaussian/covariance.h"
#include "searchers/gaussian/outcomes.h"
#include "searchers/model/cube.h"

namespace attune::searchers {

// All that is fitted: Hyperparameters, and the bend of Outcomes.
struct FittedParameters {
  Hyperparameters covariance;
  double bend = 0;
};

// The inverse gamma prior of the covariance's scale.
inline constexpr double kScaleShape = 2;
inline constexpr double kScaleRate = 2;

// The negative logarithm of the posterior density of hyperparameters, but for a constant, and its
// gradient, for Descend: lengthscales first, then noise, trend, ripple and bend.
//
// The scale of the covariance is integrated out, under its prior
// (for the rest: Rasmussen and Williams 2006, §5.4.1). Priors: lengthscales as in Hvarfner,
// Hellsten and Nardi ("Vanilla Bayesian Optimization Performs Great in High Dimensions", ICML
// 2024), whose median grows with the root of the number of dimensions; the others log-normal.
class Evidence {
 public:
  // A row of `points` an outcome. REQUIRES: at least one.
  Evidence(const Cube& cube, const Eigen::MatrixXd& points, const Outcomes& outcomes);

  double operator()(const Eigen::VectorXd& at, Eigen::VectorXd& gradient) const;

 private:
  const Cube& cube_;
  const Outcomes& outcomes_;
  Eigen::Index count_;
  Eigen::MatrixXd distances_;
  Eigen::MatrixXd trend_;
};

// Where a fit begins without one before: of smooth losses, and of rugged ones.
std::vector<FittedParameters> StartingParameters(const Cube& cube);

// The hyperparameters of the greatest posterior density that a descent from each of `beginnings`,
// of so many evaluations, comes upon.
FittedParameters Fit(const Cube& cube, const Eigen::MatrixXd& points, const Outcomes& outcomes,
           const std::vector<FittedParameters>& beginnings, int evaluations);

}  // namespace attune::searchers
