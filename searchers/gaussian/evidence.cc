#include "searchers/gaussian/evidence.h"

#include <algorithm>
#include <functional>
#include <limits>

#include <Eigen/Cholesky>

#include "core/base/elementary.h"
#include "searchers/gaussian/descend.h"

namespace attune::searchers {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// A normal prior of a logarithm, with bounds.
struct NormalPrior {
  double mean, deviation, low, high;

  double Penalty(double at) const {
    const double z = (at - mean) / deviation;
    return z * z / 2;
  }
  double Slope(double at) const { return (at - mean) / (deviation * deviation); }
};

NormalPrior LengthscalePrior(size_t dimensions) {
  constexpr double kRoot2 = 1.41421356237309504880;
  constexpr double kRoot3 = 1.73205080756887729353;
  return {kRoot2 + Log(static_cast<double>(dimensions)) / 2, kRoot3, -4, 8};
}
constexpr NormalPrior kNoise{-9, 3, -18.4, 0.7};
constexpr NormalPrior kTrend{-2, 3, -14, 7};
constexpr NormalPrior kRipple{-5, 3, -14, 2};
constexpr NormalPrior kBend{0, 2, -7, 9};

// Computes the lower half of (L·Lᵀ)⁻¹ from the lower half of L. It works in blocks, to skip most of
// the zeros.
MatrixXd InverseOfProduct(const MatrixXd& factor) {
  constexpr Index kBlock = 24;
  const Index n = factor.rows();
  MatrixXd inverse = MatrixXd::Zero(n, n);  // of L
  for (Index j = 0; j < n; j += kBlock) {
    const Index width = std::min(kBlock, n - j);
    inverse.block(j, j, width, width).setIdentity();
    auto columns = inverse.block(j, j, n - j, width);
    factor.bottomRightCorner(n - j, n - j).triangularView<Eigen::Lower>().solveInPlace(columns);
  }
  MatrixXd product = MatrixXd::Zero(n, n);
  for (Index i = 0; i < n; i += kBlock) {
    const Index width = std::min(kBlock, n - i);
    product.block(i, 0, width, i + width).noalias() =
        inverse.block(i, i, n - i, width).transpose() * inverse.block(i, 0, n - i, i + width);
  }
  return product;
}

// Offsets of the parameters after the lengthscales, and their number.
enum : Index { kNoiseAfter, kTrendAfter, kRippleAfter, kBendAfter, kCountAfter };

}  // namespace

Evidence::Evidence(const Cube& cube, const MatrixXd& points, const Outcomes& outcomes)
    : cube_(cube),
      outcomes_(outcomes),
      count_(points.rows()),
      distances_(Covariance::Distances(cube, points)),
      trend_(Covariance::Trend(cube, points)) {}

double Evidence::operator()(const VectorXd& at, VectorXd& gradient) const {
  const auto d = static_cast<Index>(cube_.size());
  const Index n = count_;
  const double noise = Exp(at[d + kNoiseAfter]);
  const double trend = Exp(at[d + kTrendAfter]);
  VectorXd scales(d);
  for (Index k = 0; k < d; ++k) scales[k] = Exp(-2 * at[k]);

  VectorXd near = distances_ * scales;
  VectorXd slopes;
  VectorXd ripples;
  const double ripple = Exp(at[d + kRippleAfter]);
  Covariance::Matern(near, ripple, &slopes, &ripples);
  MatrixXd covariance = trend * trend_;
  Index pair = 0;
  for (Index j = 0; j < n; ++j) {
    covariance(j, j) += 1 + ripple + Covariance::kConstant + noise;
    covariance.col(j).tail(n - j - 1).array() +=
        near.segment(pair, n - j - 1).array() + Covariance::kConstant;
    pair += n - j - 1;
  }
  const Eigen::LLT<Eigen::Ref<MatrixXd>> cholesky(covariance);
  gradient.setZero(at.size());
  if (cholesky.info() != Eigen::Success) return std::numeric_limits<double>::infinity();

  const Outcomes::Values outcomes = outcomes_.ValuesFor(at[d + kBendAfter]);
  const VectorXd weights = cholesky.solve(outcomes.values);
  const double shape = kScaleShape + static_cast<double>(n) / 2;
  const double rate = kScaleRate + outcomes.values.dot(weights) / 2;
  double value = shape * Log(rate) - outcomes.log_jacobian;
  for (Index j = 0; j < n; ++j) value += Log(covariance(j, j));

  // Half the derivative of the value by the covariance of a pair, which occurs twice in the matrix.
  MatrixXd effect = InverseOfProduct(covariance);
  effect.selfadjointView<Eigen::Lower>().rankUpdate(weights, -shape / rate);
  pair = 0;
  VectorXd by_distance(near.size());
  double by_trend = 0;
  double by_ripple = effect.diagonal().sum() / 2;
  for (Index j = 0; j < n; ++j) {
    const Index below = n - j - 1;
    const auto column = effect.col(j).tail(below).array();
    by_distance.segment(pair, below) = column * slopes.segment(pair, below).array();
    by_ripple += (column * ripples.segment(pair, below).array()).sum();
    by_trend += effect(j, j) * trend_(j, j) / 2;
    by_trend += (column * trend_.col(j).tail(below).array()).sum();
    pair += below;
  }
  for (Index k = 0; k < d; ++k) {
    gradient[k] = -2 * scales[k] * distances_.col(k).dot(by_distance);
  }
  gradient[d + kNoiseAfter] = noise * effect.diagonal().sum() / 2;
  gradient[d + kTrendAfter] = trend * by_trend;
  gradient[d + kRippleAfter] = ripple * by_ripple;
  gradient[d + kBendAfter] =
      shape / rate * weights.dot(outcomes.derivatives) - outcomes.log_jacobian_derivative;

  const NormalPrior lengthscale = LengthscalePrior(cube_.size());
  const auto add_prior = [&](Index i, const NormalPrior& prior) {
    value += prior.Penalty(at[i]);
    gradient[i] += prior.Slope(at[i]);
  };
  for (Index k = 0; k < d; ++k) add_prior(k, lengthscale);
  add_prior(d + kNoiseAfter, kNoise);
  add_prior(d + kTrendAfter, kTrend);
  add_prior(d + kBendAfter, kBend);
  add_prior(d + kRippleAfter, kRipple);
  return value;
}

namespace {

// The parameters in the order of Evidence.
VectorXd VectorOf(const FittedParameters& fitted) {
  const Index d = fitted.covariance.lengthscales.size();
  VectorXd numbers(d + kCountAfter);
  numbers.head(d) = fitted.covariance.lengthscales;
  numbers[d + kNoiseAfter] = fitted.covariance.noise;
  numbers[d + kTrendAfter] = fitted.covariance.trend;
  numbers[d + kRippleAfter] = fitted.covariance.ripple;
  numbers[d + kBendAfter] = fitted.bend;
  return numbers;
}

}  // namespace

std::vector<FittedParameters> StartingParameters(const Cube& cube) {
  const auto d = static_cast<Index>(cube.size());
  const double lengthscale = LengthscalePrior(cube.size()).mean;
  FittedParameters smooth{
      {VectorXd::Constant(d, lengthscale), kNoise.mean, kTrend.mean, kRipple.mean}, kBend.mean};
  FittedParameters rugged = smooth;
  rugged.covariance.ripple = -1;
  return {smooth, rugged};
}

FittedParameters FitParameters(const Cube& cube, const MatrixXd& points, const Outcomes& outcomes,
                               const std::vector<FittedParameters>& starts, int evaluations) {
  const auto d = static_cast<Index>(cube.size());
  VectorXd low(d + kCountAfter);
  VectorXd high(d + kCountAfter);
  const auto bound = [&](Index i, const NormalPrior& prior) {
    low[i] = prior.low, high[i] = prior.high;
  };
  for (Index k = 0; k < d; ++k) bound(k, LengthscalePrior(cube.size()));
  bound(d + kNoiseAfter, kNoise);
  bound(d + kTrendAfter, kTrend);
  bound(d + kBendAfter, kBend);
  bound(d + kRippleAfter, kRipple);

  const Evidence evidence(cube, points, outcomes);
  VectorXd best = VectorOf(starts[0]);
  double least = std::numeric_limits<double>::infinity();
  for (const FittedParameters& start : starts) {
    VectorXd at = VectorOf(start);
    const double found = Descend(std::cref(evidence), low, high, evaluations, at);
    if (found < least) least = found, best = at;
  }
  return {{best.head(d), best[d + kNoiseAfter], best[d + kTrendAfter], best[d + kRippleAfter]},
          best[d + kBendAfter]};
}

}  // namespace attune::searchers
