#pragma once

#include <cstddef>
#include <vector>

#include <Eigen/Core>

#include "searchers/gaussian/covariance.h"
#include "searchers/gaussian/evidence.h"
#include "searchers/gaussian/outcomes.h"
#include "searchers/model/cube.h"

namespace attune::searchers {

// A Gaussian process that has seen outcomes, and knows of points whose outcome is not known yet
// ("pending"): of these it has drawn some guesses ("fantasies": Snoek, Larochelle and Adams, NIPS
// 2012, §3.2), each of which shifts the mean; the variance is the same under all of them.
class Process {
 public:
  // `draws`: standard normal numbers, a row a pending point, a column a guess; at least one column.
  Process(const Cube& cube, const Fitted& fitted, const Eigen::MatrixXd& points,
          const Outcomes& outcomes, const Eigen::MatrixXd& pending, const Eigen::MatrixXd& draws);

  struct Prediction {
    Eigen::VectorXd means;  // one a guess
    double variance = 0;    // of the loss without noise; above 0
  };
  Prediction At(const Eigen::RowVectorXd& at) const;

  // The logarithm of the improvement over the best that is expected at each row, the mean over the
  // guesses.
  Eigen::VectorXd LogImprovements(const Eigen::MatrixXd& at) const;

  // The same at one point, and its derivatives by `dimensions`, in their order.
  double LogImprovement(const Eigen::RowVectorXd& at, const std::vector<size_t>& dimensions,
                        Eigen::VectorXd& gradient) const;

  double Lengthscale(size_t dimension) const { return covariance_.Lengthscale(dimension); }

 private:
  // `reduced`: factor⁻¹ · the covariances with a point. What they leave of its variance; above 0.
  double VarianceLeft(const Eigen::RowVectorXd& at, const Eigen::VectorXd& reduced) const;

  // The logarithm of the expected improvement, and its derivatives.
  struct Expected {
    double log = 0;
    Eigen::VectorXd by_mean;
    double by_variance = 0;
  };
  Expected Expect(const Eigen::VectorXd& means, double variance) const;

  Covariance covariance_;
  Eigen::MatrixXd points_;   // outcomes, then pending ones
  Eigen::MatrixXd factor_;   // lower, of the covariance beside the scale
  Eigen::MatrixXd reduced_;  // factor⁻¹ · values; a column a guess
  Eigen::MatrixXd weights_;  // of the mean: factor⁻ᵀ · reduced
  double scale_ = 1;         // the variance of the covariance
  Eigen::VectorXd best_;     // one a guess: the least mean at the points
};

}  // namespace attune::searchers
