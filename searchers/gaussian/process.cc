#include "searchers/gaussian/process.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <Eigen/Cholesky>

#include "base/check.h"
#include "core/base/elementary.h"
#include "searchers/gaussian/improvement.h"

namespace attune::searchers {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

}  // namespace

Process::Process(const Cube& cube, const FittedParameters& fitted, const MatrixXd& points,
                 const Outcomes& outcomes, const MatrixXd& pending, const MatrixXd& draws)
    : covariance_(cube, fitted.covariance), points_(points.rows() + pending.rows(), points.cols()) {
  const Index known = points.rows();
  const Index all = points_.rows();
  points_ << points, pending;
  MatrixXd covariance(all, all);
  VectorXd column;
  for (Index i = 0; i < all; ++i) {
    covariance_.ComputeColumn(points_, points_.row(i), column, nullptr);
    covariance.col(i) = column;
  }
  // If points coincide or scales are extreme, the factorisation may fail. It succeeds with a little
  // more noise.
  Eigen::LLT<MatrixXd> cholesky;
  double noise = Exp(fitted.covariance.noise);
  for (;; noise *= 10) {
    MatrixXd noisy = covariance;
    noisy.diagonal().array() += noise;
    cholesky.compute(noisy);
    if (cholesky.info() == Eigen::Success) break;
    ATTUNE_CHECK(noise < 1e6);
  }
  factor_ = cholesky.matrixL();
  const VectorXd values = outcomes.ValuesFor(fitted.bend).values;
  const VectorXd reduced =
      factor_.topLeftCorner(known, known).triangularView<Eigen::Lower>().solve(values);
  scale_ =
      (kScaleRate + reduced.squaredNorm() / 2) / (kScaleShape + static_cast<double>(known) / 2);
  reduced_.resize(all, draws.cols());
  reduced_.topRows(known).colwise() = reduced;
  reduced_.bottomRows(pending.rows()) = std::sqrt(scale_) * draws;
  weights_ = factor_.triangularView<Eigen::Lower>().transpose().solve(reduced_);
  means_ = covariance * weights_;
  best_ = means_.colwise().minCoeff();
}

double Process::PosteriorVariance(const RowVectorXd& at, const VectorXd& reduced) const {
  constexpr double kLeast = 1e-12;  // share of the prior variance
  const double prior = covariance_.Variance(at);
  return scale_ * std::max(prior - reduced.squaredNorm(), kLeast * prior);
}

Process::Prediction Process::Predict(const RowVectorXd& at) const {
  VectorXd reduced;
  covariance_.ComputeColumn(points_, at, reduced, nullptr);
  factor_.triangularView<Eigen::Lower>().solveInPlace(reduced);
  return {reduced_.transpose() * reduced, PosteriorVariance(at, reduced)};
}

Process::ExpectedImprovement Process::ComputeImprovement(const VectorXd& means,
                                                         double variance) const {
  const double deviation = std::sqrt(variance);
  const Index guesses = means.size();
  VectorXd logs(guesses);
  ExpectedImprovement expected{.by_mean = VectorXd(guesses)};
  for (Index i = 0; i < guesses; ++i) {
    const auto improvement = LogExpectedImprovement((best_[i] - means[i]) / deviation);
    logs[i] = improvement.value;
    expected.by_mean[i] = -improvement.slope / deviation;
  }
  const double most = logs.maxCoeff();
  double sum = 0;
  for (Index i = 0; i < guesses; ++i) sum += logs[i] = Exp(logs[i] - most);
  expected.log = Log(variance) / 2 + most + Log(sum / static_cast<double>(guesses));
  expected.by_mean.array() *= logs.array() / sum;
  expected.by_variance = (1 + expected.by_mean.dot(best_ - means)) / (2 * variance);
  return expected;
}

Process::Predictions Process::PredictEach(const MatrixXd& at) const {
  MatrixXd reduced(points_.rows(), at.rows());
  VectorXd column;
  for (Index i = 0; i < at.rows(); ++i) {
    covariance_.ComputeColumn(points_, at.row(i), column, nullptr);
    reduced.col(i) = column;
  }
  factor_.triangularView<Eigen::Lower>().solveInPlace(reduced);
  Predictions predictions{reduced_.transpose() * reduced, VectorXd(at.rows())};
  for (Index i = 0; i < at.rows(); ++i) {
    predictions.variances[i] = PosteriorVariance(at.row(i), reduced.col(i));
  }
  return predictions;
}

Process::Place Process::PredictForGradient(const RowVectorXd& at) const {
  Place place{.at = at};
  covariance_.ComputeColumn(points_, at, place.reduced, &place.slopes);
  factor_.triangularView<Eigen::Lower>().solveInPlace(place.reduced);
  place.prediction = {reduced_.transpose() * place.reduced, PosteriorVariance(at, place.reduced)};
  return place;
}

VectorXd Process::Gradient(Place place, const VectorXd& by_means, double by_variance,
                           const std::vector<size_t>& dimensions) const {
  by_variance *= scale_;
  factor_.triangularView<Eigen::Lower>().transpose().solveInPlace(place.reduced);
  const VectorXd by_covariance = weights_ * by_means - 2 * by_variance * place.reduced;
  VectorXd gradient(std::ssize(dimensions));
  for (Index i = 0; i < gradient.size(); ++i) {
    const size_t k = dimensions[static_cast<size_t>(i)];
    gradient[i] = covariance_.Gradient(points_, place.at, place.slopes, by_covariance, k) +
                  by_variance * covariance_.VarianceGradient(place.at, k);
  }
  return gradient;
}

VectorXd Process::LogImprovements(const MatrixXd& at) const {
  const Predictions predictions = PredictEach(at);
  VectorXd logs(at.rows());
  for (Index i = 0; i < at.rows(); ++i) {
    logs[i] = ComputeImprovement(predictions.means.col(i), predictions.variances[i]).log;
  }
  return logs;
}

double Process::LogImprovement(const RowVectorXd& at, const std::vector<size_t>& dimensions,
                               VectorXd& gradient) const {
  Place place = PredictForGradient(at);
  const ExpectedImprovement expected =
      ComputeImprovement(place.prediction.means, place.prediction.variance);
  gradient = Gradient(std::move(place), expected.by_mean, expected.by_variance, dimensions);
  return expected.log;
}

}  // namespace attune::searchers
