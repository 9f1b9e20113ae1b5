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

// A Gaussian process that has seen outcomes, and knows of points whose outcome is not known yet
// ("pending"): of these it has drawn some guesses ("fantasies": Snoek, Larochelle and Adams, NIPS
// 2012, §3.2), each of which shifts the mean; the variance is the same under all of them.
//
// As an acquisition it is the improvement over the best that is expected, the mean over the
// guesses.
class Process final : public Acquisition {
 public:
  // `draws`: standard normal numbers, a row a pending point, a column a guess; at least one column.
  // `cube` is referred to from then on.
  Process(const Cube& cube, const FittedParameters& fitted, const Eigen::MatrixXd& points,
          const Outcomes& outcomes, const Eigen::MatrixXd& pending, const Eigen::MatrixXd& draws);

  struct Prediction {
    Eigen::VectorXd means;  // one a guess
    double variance = 0;    // of the loss without noise; above 0
  };
  Prediction At(const Eigen::RowVectorXd& at) const;

  // The same of each row: of the means a column.
  struct Predictions {
    Eigen::MatrixXd means;
    Eigen::VectorXd variances;
  };
  Predictions PredictEach(const Eigen::MatrixXd& at) const;

  // A prediction that can be differentiated.
  struct Place {
    Eigen::RowVectorXd at;
    Eigen::VectorXd reduced;  // factor⁻¹ · the covariances with the point
    Eigen::VectorXd slopes;   // of the covariances
    Prediction prediction;
  };
  Place PredictForGradient(const Eigen::RowVectorXd& at) const;
  // The derivatives by `dimensions` of what has these derivatives by the prediction.
  Eigen::VectorXd Gradient(Place place, const Eigen::VectorXd& by_means, double by_variance,
                           const std::vector<size_t>& dimensions) const;

  // What is expected at all its points, a row each, outcomes before pending ones; a column a guess.
  const Eigen::MatrixXd& means() const { return means_; }

  Eigen::VectorXd LogImprovements(const Eigen::MatrixXd& at) const override;
  double LogImprovement(const Eigen::RowVectorXd& at, const std::vector<size_t>& dimensions,
                        Eigen::VectorXd& gradient) const override;
  double Lengthscale(size_t dimension) const override { return covariance_.Lengthscale(dimension); }

 private:
  // `reduced`: factor⁻¹ · the covariances with a point. What they leave of its variance; above 0.
  double PosteriorVariance(const Eigen::RowVectorXd& at, const Eigen::VectorXd& reduced) const;

  // The logarithm of the expected improvement, and its derivatives.
  struct ExpectedImprovement {
    double log = 0;
    Eigen::VectorXd by_mean;
    double by_variance = 0;
  };
  ExpectedImprovement ComputeImprovement(const Eigen::VectorXd& means, double variance) const;

  Covariance covariance_;
  Eigen::MatrixXd points_;   // outcomes, then pending ones
  Eigen::MatrixXd factor_;   // lower, of the covariance beside the scale
  Eigen::MatrixXd reduced_;  // factor⁻¹ · values; a column a guess
  Eigen::MatrixXd weights_;  // of the mean: factor⁻ᵀ · reduced
  double scale_ = 1;         // the variance of the covariance
  Eigen::MatrixXd means_;    // at the points
  Eigen::VectorXd best_;     // one a guess: the least of them
};

}  // namespace attune::searchers
