#include "searchers/gaussian/quadratic_fit.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <Eigen/Cholesky>
#include <Eigen/Core>

#include "base/check.h"
#include "core/base/elementary.h"
#include "searchers/model/draw.h"

namespace attune::searchers {
namespace {

constexpr size_t kFewestResults = 6;
constexpr size_t kResultsForTerm = 3;  // maximum number of results per term
constexpr double kRidge = 2e-5;        // added to the diagonal, which is the number of results
constexpr double kLeastSpread = 1e-12;
constexpr double kMostLeverage = 1 - 1e-9;
constexpr double kLowest = -37;  // below this quantile, a probability is a subnormal number
constexpr int kDescents = 30;    // passes through all coordinates

bool IsNumber(const Axis& axis) { return axis.kind != Cube::Kind::kChoice; }

size_t TermsOf(const std::vector<Axis>& axes, bool products) {
  size_t terms = 0;
  size_t numbers = 0;
  for (const Axis& axis : axes) {
    if (IsNumber(axis)) ++numbers;
    terms += IsNumber(axis) ? 2 : static_cast<size_t>(axis.count);
  }
  return terms + (products && numbers > 0 ? numbers * (numbers - 1) / 2 : 0);
}

size_t MostResults(const std::vector<Axis>& axes, bool products) {
  const size_t terms = TermsOf(axes, products);
  return terms > QuadraticFit::kMostTerms ? 0 : kResultsForTerm * (terms + 1);
}

}  // namespace

// The terms of each axis: x and x² of a number, an indicator for each value of a list. Then the
// products.
template <typename Row>
void QuadraticFit::PutTerms(const Point& point, Row&& row) const {
  const auto scaled = [&](size_t i) { return (point[i] - scales_[i].centre) / scales_[i].width; };
  ptrdiff_t term = 0;
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (IsNumber(axes_[i])) {
      row[term++] = scaled(i);
      row[term++] = scaled(i) * scaled(i);
    } else {
      for (int64_t value = 0; value < axes_[i].count; ++value) {
        row[term++] = static_cast<double>(value) == point[i] ? 1 : 0;
      }
    }
  }
  if (!products_) return;
  for (size_t i = 0; i < axes_.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (IsNumber(axes_[i]) && IsNumber(axes_[j])) row[term++] = scaled(i) * scaled(j);
    }
  }
}

Point QuadraticFit::MinimumOf(const std::vector<double>& slopes, Point point) const {
  struct Number {
    size_t axis;
    bool varies;
    double linear;
    double square;
    double at;
  };
  std::vector<Number> numbers;
  size_t term = 0;
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (IsNumber(axes_[i])) {
      const double at = (point[i] - scales_[i].centre) / scales_[i].width;
      numbers.push_back({i, terms_[term].varies, slopes[term], slopes[term + 1], at});
      term += 2;
      continue;
    }
    double least = 0;
    bool found = false;
    for (int64_t value = 0; value < axes_[i].count; ++value, ++term) {
      if (!terms_[term].varies || (found && slopes[term] >= least)) continue;
      found = true;
      least = slopes[term];
      point[i] = static_cast<double>(value);
    }
  }
  const auto product = [&](size_t i, size_t j) {
    return slopes[term + std::max(i, j) * (std::max(i, j) - 1) / 2 + std::min(i, j)];
  };
  for (int descent = 0; descent < (products_ ? kDescents : 1); ++descent) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      Number& number = numbers[i];
      if (!number.varies) continue;
      double linear = number.linear;
      for (size_t j = 0; products_ && j < numbers.size(); ++j) {
        if (j != i) linear += product(i, j) * numbers[j].at;
      }
      const auto [centre, width] = scales_[number.axis];
      const double low = -centre / width;
      const double high = (1 - centre) / width;
      number.at = number.square > 0 ? std::clamp(-linear / (2 * number.square), low, high)
                  : linear * (low + high) + number.square * (low * low + high * high) > 0 ? low
                                                                                          : high;
    }
  }
  for (const Number& number : numbers) {
    const auto [centre, width] = scales_[number.axis];
    if (number.varies) point[number.axis] = std::clamp(centre + width * number.at, 0.0, 1.0);
  }
  return point;
}

size_t QuadraticFit::ResultsMax(const std::vector<Axis>& axes) {
  return std::max(MostResults(axes, false), MostResults(axes, true));
}

std::optional<QuadraticFit> QuadraticFit::Make(const std::vector<Axis>& axes,
                                               const std::vector<Point>& points,
                                               const std::vector<double>& values,
                                               const std::vector<Point>& failed) {
  ATTUNE_CHECK(points.size() <= ResultsMax(axes) && failed.size() <= FailedMax(axes));
  ATTUNE_CHECK(points.size() == values.size());
  auto fit = Make(axes, points, values, failed, false);
  if (points.size() + failed.size() < TermsOf(axes, true)) return fit;
  auto other = Make(axes, points, values, failed, true);
  return other && (!fit || other->explained_ > fit->explained_) ? other : fit;
}

std::optional<QuadraticFit> QuadraticFit::Make(const std::vector<Axis>& axes,
                                               const std::vector<Point>& points,
                                               const std::vector<double>& values,
                                               const std::vector<Point>& failed, bool products) {
  const size_t most = MostResults(axes, products);
  const size_t worst = std::min(failed.size(), most / 3);
  const size_t valued = std::min(points.size(), most - worst);
  if (valued == 0 || valued + worst < kFewestResults) return std::nullopt;
  const double extent = values[valued - 1] - values[0];
  if (!(extent > 0) || !std::isfinite(extent)) return std::nullopt;
  const auto count = static_cast<Eigen::Index>(valued + worst);
  const auto results = static_cast<double>(count);
  const auto terms = static_cast<Eigen::Index>(TermsOf(axes, products));
  const auto at = [&](Eigen::Index i) -> const Point& {
    const auto place = static_cast<size_t>(i);
    return place < valued ? points[place] : failed[place - valued];
  };

  QuadraticFit fit;
  fit.axes_ = axes;
  fit.products_ = products;
  fit.results_ = valued + worst;
  for (size_t k = 0; k < axes.size(); ++k) {
    Scale& scale = fit.scales_.emplace_back();
    double squares = 0;
    for (Eigen::Index i = 0; i < count; ++i) scale.centre += at(i)[k] / results;
    for (Eigen::Index i = 0; i < count; ++i) {
      squares += (at(i)[k] - scale.centre) * (at(i)[k] - scale.centre) / results;
    }
    if (squares > kLeastSpread * kLeastSpread) scale.width = std::sqrt(squares);
  }

  Eigen::MatrixXd design(count, terms);
  Eigen::VectorXd targets(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    fit.PutTerms(at(i), design.row(i));
    const double value = values[std::min(static_cast<size_t>(i), valued - 1)];
    targets[i] = (value - values[0]) / extent;
  }
  targets.array() -= targets.mean();
  for (Eigen::Index j = 0; j < terms; ++j) {
    Term& term = fit.terms_.emplace_back();
    term.mean = design.col(j).mean();
    design.col(j).array() -= term.mean;
    const double deviation = std::sqrt(design.col(j).squaredNorm() / results);
    term.varies = deviation > kLeastSpread;
    if (term.varies) term.deviation = deviation;
    design.col(j) /= term.deviation;
  }

  Eigen::MatrixXd precision = Eigen::MatrixXd::Zero(terms, terms);
  precision.selfadjointView<Eigen::Lower>().rankUpdate(design.transpose());
  precision.diagonal().array() += kRidge;
  const Eigen::LLT<Eigen::MatrixXd> factors(precision);
  if (factors.info() != Eigen::Success) return std::nullopt;
  const Eigen::VectorXd slopes = factors.solve(design.transpose() * targets);
  const Eigen::MatrixXd halves = factors.matrixL().solve(design.transpose());
  const Eigen::ArrayXd leverages =
      halves.colwise().squaredNorm().transpose().array() + 1 / results;  // the mean's
  const Eigen::VectorXd errors =  // of each result, predicted by a fit without it
      (targets - design * slopes).array() / (1 - leverages.min(kMostLeverage));
  fit.explained_ = 1 - errors.squaredNorm() / targets.squaredNorm();
  if (!(fit.explained_ > 0)) return std::nullopt;
  fit.best_ = targets[0];
  fit.deviation_ = std::max(std::sqrt(errors.squaredNorm() / results), kLeastSpread);
  for (Eigen::Index j = 0; j < terms; ++j) fit.terms_[static_cast<size_t>(j)].slope = slopes[j];
  const Eigen::MatrixXd factor = factors.matrixL();
  fit.factor_.assign(factor.reshaped().begin(), factor.reshaped().end());
  return fit;
}

double QuadraticFit::LogImprovementChance(const Point& point) const {
  const size_t count = terms_.size();
  std::vector<double> units(count);
  PutTerms(point, units);
  double predicted = 0;
  double variance = 0;  // of a result at the point
  for (size_t i = 0; i < count; ++i) {
    const Term& term = terms_[i];
    units[i] = (units[i] - term.mean) / term.deviation;
    predicted += term.slope * units[i];
    if (term.varies) continue;
    variance += units[i] * units[i];  // nothing is known about this term
    units[i] = 0;
  }
  variance += deviation_ * deviation_;
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < i; ++j) units[i] -= factor_[j * count + i] * units[j];
    units[i] /= factor_[i * count + i];
    variance += deviation_ * deviation_ * units[i] * units[i];
  }
  return Log(NormalCdf(std::max((best_ - predicted) / std::sqrt(variance), kLowest)));
}

Point QuadraticFit::Draw(RandomStream& random, Point from) const {
  const size_t count = terms_.size();
  std::vector<double> slopes(count);
  for (double& slope : slopes) slope = StandardNormal(random);
  for (size_t i = count; i-- > 0;) {  // gives them the inverse of the precision as covariance
    for (size_t j = i + 1; j < count; ++j) slopes[i] -= factor_[i * count + j] * slopes[j];
    slopes[i] /= factor_[i * count + i];
  }
  for (size_t i = 0; i < count; ++i) {
    const Term& term = terms_[i];
    slopes[i] = term.varies ? (term.slope + deviation_ * slopes[i]) / term.deviation : 0;
  }
  return MinimumOf(slopes, std::move(from));
}

}  // namespace attune::searchers
