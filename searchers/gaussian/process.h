#pragma once

#include <cstddef>
#include <vector>

#include <Eigen/Core>

#include "searchers/gaussian/acquisition.h"
#include "searchers/gaussian/covariance.h"
#include "searchers/gaussian/evidence.h"
#include "searchers/gaussian/outcomes.h"
#include "searchers/model/cube.h"

namespace attune::searchers {

// A Gaussian process with observed outcomes, and with pending points, whose outcomes are unknown.
// For the pending points, several guesses are sampled ("fantasies": Snoek, Larochelle and Adams,
// NIPS 2012, §3.2). Each guess has another mean; the variance is the same for all.
//
// As an acquisition, it is the expected improvement over the best mean, averaged over the guesses.
class Process final : public Acquisition {
 public:
  // `draws` are standard normal numbers, with one row per pending point and one column per guess;
  // at least one column. `cube` must outlive the object.
  Process(const Cube& cube, const FittedParameters& fitted, const Eigen::MatrixXd& points,
          const Outcomes& outcomes, const Eigen::MatrixXd& pending, const Eigen::MatrixXd& draws);

  struct Prediction {
    Eigen::VectorXd means;  // one per guess
    double variance = 0;    // of the loss without noise; above 0
  };
  Prediction Predict(const Eigen::RowVectorXd& at) const;

  // The predictions for several points; `means` has one column per point.
  struct Predictions {
    Eigen::MatrixXd means;
    Eigen::VectorXd variances;
  };
  Predictions PredictEach(const Eigen::MatrixXd& at) const;

  // A prediction, with the intermediate results that its derivatives need.
  struct Place {
    Eigen::RowVectorXd at;
    Eigen::VectorXd reduced;  // factor⁻¹ · the covariances with the point
    Eigen::VectorXd slopes;   // see Covariance::ComputeColumn
    Prediction prediction;
  };
  Place PredictForGradient(const Eigen::RowVectorXd& at) const;
  // The chain rule: from the derivatives of a function by the means and the variance of the
  // prediction, computes its derivatives by the coordinates `dimensions`.
  Eigen::VectorXd Gradient(Place place, const Eigen::VectorXd& by_means, double by_variance,
                           const std::vector<size_t>& dimensions) const;

  // The means at all points of the process: one row per point, the observed ones first, and one
  // column per guess.
  const Eigen::MatrixXd& means() const { return means_; }

  Eigen::VectorXd LogImprovements(const Eigen::MatrixXd& at) const override;
  double LogImprovement(const Eigen::RowVectorXd& at, const std::vector<size_t>& dimensions,
                        Eigen::VectorXd& gradient) const override;
  double Lengthscale(size_t dimension) const override { return covariance_.Lengthscale(dimension); }

 private:
  // The variance at a point; above 0. `reduced` is factor⁻¹ · the covariances with the point.
  double PosteriorVariance(const Eigen::RowVectorXd& at, const Eigen::VectorXd& reduced) const;

  // The logarithm of the expected improvement, and its derivatives.
  struct ExpectedImprovement {
    double log = 0;
    Eigen::VectorXd by_mean;
    double by_variance = 0;
  };
  ExpectedImprovement ComputeImprovement(const Eigen::VectorXd& means, double variance) const;

  Covariance covariance_;
  Eigen::MatrixXd points_;   // observed points, then pending ones
  Eigen::MatrixXd factor_;   // lower Cholesky factor of the covariance without the scale
  Eigen::MatrixXd reduced_;  // factor⁻¹ · values; one column per guess
  Eigen::MatrixXd weights_;  // factor⁻ᵀ · reduced: the weights of the covariances in the mean
  double scale_ = 1;         // scale of the covariance
  Eigen::MatrixXd means_;    // at the points
  Eigen::VectorXd best_;     // by guess: the least mean
};

}  // namespace attune::searchers
