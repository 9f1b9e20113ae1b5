#include "searchers/gaussian/quadratic_fit.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <Eigen/Cholesky>
#include <Eigen/Core>

#include "core/base/check.h"
#include "core/base/elementary.h"
#include "searchers/model/draw.h"

namespace attune::searchers {
namespace {

constexpr size_t kFewest = 6;          // results
constexpr size_t kResultsForTerm = 3;  // at most
constexpr double kRidge = 2e-5;        // beside as many as there are results
constexpr double kLeastSpread = 1e-12;
constexpr double kMostLeverage = 0.99;
constexpr double kLowest = -37;  // deviations, beyond which a chance is no normal number
constexpr int kDescents = 30;    // through all coordinates

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

double FromMiddle(double coordinate) { return 2 * coordinate - 1; }

// By axis x and x² of a number, or which value of the list it is; then the products.
template <typename Row>
void PutTerms(const std::vector<Axis>& axes, const Point& point, bool products, Row&& row) {
  ptrdiff_t term = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (IsNumber(axes[i])) {
      const double x = FromMiddle(point[i]);
      row[term++] = x;
      row[term++] = x * x;
    } else {
      for (int64_t value = 0; value < axes[i].count; ++value) {
        row[term++] = static_cast<double>(value) == point[i] ? 1 : 0;
      }
    }
  }
  if (!products) return;
  for (size_t i = 0; i < axes.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (IsNumber(axes[i]) && IsNumber(axes[j])) {
        row[term++] = FromMiddle(point[i]) * FromMiddle(point[j]);
      }
    }
  }
}

// Where the quadratic function of these slopes is least: exactly, where it has no products.
Point Least(const std::vector<Axis>& axes, const std::vector<double>& slopes, bool products,
            Point point) {
  struct Number {
    size_t axis;
    double linear;
    double square;
    double at;
  };
  std::vector<Number> numbers;
  size_t term = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto first = slopes.begin() + static_cast<ptrdiff_t>(term);
    if (IsNumber(axes[i])) {
      numbers.push_back({i, first[0], first[1], FromMiddle(point[i])});
      term += 2;
    } else {
      point[i] = static_cast<double>(std::min_element(first, first + axes[i].count) - first);
      term += static_cast<size_t>(axes[i].count);
    }
  }
  const auto product = [&](size_t i, size_t j) {
    return slopes[term + std::max(i, j) * (std::max(i, j) - 1) / 2 + std::min(i, j)];
  };
  for (int descent = 0; descent < (products ? kDescents : 1); ++descent) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      Number& number = numbers[i];
      double linear = number.linear;
      for (size_t j = 0; products && j < numbers.size(); ++j) {
        if (j != i) linear += product(i, j) * numbers[j].at;
      }
      number.at = number.square > 0 ? std::clamp(-linear / (2 * number.square), -1.0, 1.0)
                  : linear > 0      ? -1
                                    : 1;
    }
  }
  for (const Number& number : numbers) point[number.axis] = (number.at + 1) / 2;
  return point;
}

}  // namespace

size_t QuadraticFit::Wanted(const std::vector<Axis>& axes) {
  return std::max(MostResults(axes, false), MostResults(axes, true));
}

std::optional<QuadraticFit> QuadraticFit::Make(const std::vector<Axis>& axes,
                                               const std::vector<Point>& points,
                                               const std::vector<double>& values) {
  ATTUNE_CHECK(points.size() <= Wanted(axes) && points.size() == values.size());
  auto fit = Make(axes, points, values, false);
  if (points.size() < TermsOf(axes, true)) return fit;
  auto other = Make(axes, points, values, true);
  return other && (!fit || other->explained_ > fit->explained_) ? other : fit;
}

std::optional<QuadraticFit> QuadraticFit::Make(const std::vector<Axis>& axes,
                                               const std::vector<Point>& points,
                                               const std::vector<double>& values, bool products) {
  const size_t results = std::min(points.size(), MostResults(axes, products));
  if (results < kFewest) return std::nullopt;
  const double extent = values[results - 1] - values[0];
  if (!(extent > 0) || !std::isfinite(extent)) return std::nullopt;
  const auto count = static_cast<Eigen::Index>(results);
  const auto terms = static_cast<Eigen::Index>(TermsOf(axes, products));

  Eigen::MatrixXd design(count, terms);
  Eigen::VectorXd wanted(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    const auto place = static_cast<size_t>(i);
    PutTerms(axes, points[place], products, design.row(i));
    wanted[i] = (values[place] - values[0]) / extent;
  }
  wanted.array() -= wanted.mean();
  const Eigen::RowVectorXd means = design.colwise().mean();
  design.rowwise() -= means;
  Eigen::RowVectorXd spreads =
      (design.colwise().squaredNorm() / static_cast<double>(count)).cwiseSqrt();
  for (double& spread : spreads) {
    if (!(spread > kLeastSpread)) spread = 1;
  }
  design.array().rowwise() /= spreads.array();

  Eigen::MatrixXd precision = Eigen::MatrixXd::Zero(terms, terms);
  precision.selfadjointView<Eigen::Lower>().rankUpdate(design.transpose());
  precision.diagonal().array() += kRidge;
  const Eigen::LLT<Eigen::MatrixXd> factors(precision);
  if (factors.info() != Eigen::Success) return std::nullopt;
  const Eigen::VectorXd slopes = factors.solve(design.transpose() * wanted);
  const Eigen::MatrixXd halves = factors.matrixL().solve(design.transpose());
  const Eigen::ArrayXd leverages = halves.colwise().squaredNorm().transpose().array() +
                                   1 / static_cast<double>(count);  // the mean's
  const Eigen::VectorXd off =
      (wanted - design * slopes).array() / (1 - leverages.min(kMostLeverage));

  QuadraticFit fit;
  fit.explained_ = 1 - off.squaredNorm() / wanted.squaredNorm();
  if (!(fit.explained_ > 0)) return std::nullopt;
  fit.axes_ = axes;
  fit.products_ = products;
  fit.results_ = results;
  fit.best_ = wanted[0];
  fit.deviation_ =
      std::max(std::sqrt(off.squaredNorm() / static_cast<double>(count)), kLeastSpread);
  fit.means_.assign(means.begin(), means.end());
  fit.spreads_.assign(spreads.begin(), spreads.end());
  fit.slopes_.assign(slopes.begin(), slopes.end());
  const Eigen::MatrixXd factor = factors.matrixL();
  fit.factor_.assign(factor.reshaped().begin(), factor.reshaped().end());
  return fit;
}

double QuadraticFit::LogBetter(const Point& point) const {
  std::vector<double> terms(means_.size());
  PutTerms(axes_, point, products_, terms);
  double predicted = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    predicted += slopes_[i] * ((terms[i] - means_[i]) / spreads_[i]);
  }
  return Log(NormalCdf(std::max((best_ - predicted) / deviation_, kLowest)));
}

Point QuadraticFit::Draw(RandomStream& random, Point from) const {
  const size_t terms = means_.size();
  std::vector<double> slopes(terms);
  for (double& slope : slopes) slope = StandardNormal(random);
  for (size_t i = terms; i-- > 0;) {  // their covariance is the inverse of the precision
    for (size_t j = i + 1; j < terms; ++j) slopes[i] -= factor_[i * terms + j] * slopes[j];
    slopes[i] /= factor_[i * terms + i];
  }
  for (size_t i = 0; i < terms; ++i) {
    slopes[i] = (slopes_[i] + deviation_ * slopes[i]) / spreads_[i];
  }
  return Least(axes_, slopes, products_, std::move(from));
}

}  // namespace attune::searchers
