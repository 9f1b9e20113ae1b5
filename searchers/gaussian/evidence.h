#pragma once

#include <vector>

#include <Eigen/Core>

#include "searchers/gaussian/covariance.h"
#include "searchers/gaussian/outcomes.h"
#include "searchers/model/cube.h"

namespace attune::searchers {

// All parameters that are fitted.
struct FittedParameters {
  Hyperparameters covariance;
  double bend = 0;  // logarithm of the bend; see Outcomes
};

// The inverse gamma prior of the scale of the covariance.
inline constexpr double kScaleShape = 2;
inline constexpr double kScaleRate = 2;

// The negative logarithm of the posterior density of the parameters, up to a constant, and its
// gradient, for Descend. The parameters are the lengthscales, then noise, trend, ripple and bend.
//
// The scale of the covariance is integrated out under its prior. The rest is the marginal
// likelihood of Rasmussen and Williams 2006, §5.4.1. The prior of the lengthscales is that of
// Hvarfner, Hellsten and Nardi ("Vanilla Bayesian Optimization Performs Great in High Dimensions",
// ICML 2024), whose median grows with the square root of the number of dimensions. The other priors
// are log-normal.
class Evidence {
 public:
  // `points` has one row per outcome. `cube` and `outcomes` must outlive the object. REQUIRES: at
  // least one outcome.
  Evidence(const Cube& cube, const Eigen::MatrixXd& points, const Outcomes& outcomes);

  double operator()(const Eigen::VectorXd& at, Eigen::VectorXd& gradient) const;

 private:
  const Cube& cube_;
  const Outcomes& outcomes_;
  Eigen::Index count_;
  Eigen::MatrixXd distances_;
  Eigen::MatrixXd trend_;
};

// The starts of a first fit: one for smooth losses, and one for rugged losses.
std::vector<FittedParameters> StartingParameters(const Cube& cube);

// Maximises the posterior density by a descent from each start, with this number of evaluations
// each. Returns the best parameters found.
FittedParameters FitParameters(const Cube& cube, const Eigen::MatrixXd& points,
                               const Outcomes& outcomes,
                               const std::vector<FittedParameters>& starts, int evaluations);

}  // namespace attune::searchers
