#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/base/random.h"
#include "searchers/model/kernel.h"

namespace attune::searchers {

// A quadratic function of the coordinates, fitted to the best results by ridge regression, as in
// the local model of lq-CMA-ES (Hansen, "A global surrogate assisted CMA-ES", GECCO 2019). A list
// has one coefficient per value. The error is estimated by leave-one-out cross-validation.
//
// Two functions are fitted: one with a product for each pair of numbers, and one without, from
// fewer results. The function that explains the larger share of the variance is used.
class QuadraticFit {
 public:
  // With more terms, a fit takes too long for a proposal.
  static constexpr size_t kMostTerms = 64;

  // The maximum number of results; 0 if there are too many terms.
  static size_t ResultsMax(const std::vector<Axis>& axes);
  // The maximum number of failed points. Each replaces one of the best results.
  static size_t FailedMax(const std::vector<Axis>& axes) { return ResultsMax(axes) / 3; }

  // Nullopt if there are too few results, if they are all equal, or if no fit explains anything.
  // `failed` are the points of trials without a value. They count as the worst of the results, to
  // keep the search out of regions where trials fail.
  // REQUIRES: at most ResultsMax() points and FailedMax() failed ones, with one coordinate per
  // axis; one value per point, in ascending order.
  static std::optional<QuadraticFit> Make(const std::vector<Axis>& axes,
                                          const std::vector<Point>& points,
                                          const std::vector<double>& values,
                                          const std::vector<Point>& failed = {});

  // The logarithm of the probability that a point is better than the best result.
  double LogImprovementChance(const Point& point) const;

  // Thompson sampling: draws a function from the posterior distribution, and returns its minimum.
  // With products, this is the minimum that coordinate descent finds from the point. Coordinates
  // that are equal in all results stay as in the point.
  Point Draw(RandomStream& random, Point from) const;

  size_t results() const { return results_; }
  // The share of the variance of the results that the fit explains (R²); in (0, 1].
  double explained() const { return explained_; }

 private:
  // Centre and standard deviation of the results' coordinates in an axis.
  struct Scale {
    double centre = 0;
    double width = 1;
  };
  // A column of the regression. It is standardised to the mean and the deviation of the results.
  struct Term {
    double mean = 0;
    double deviation = 1;
    bool varies = true;
    double slope = 0;
  };

  QuadraticFit() = default;

  static std::optional<QuadraticFit> Make(const std::vector<Axis>& axes,
                                          const std::vector<Point>& points,
                                          const std::vector<double>& values,
                                          const std::vector<Point>& failed, bool products);

  template <typename Row>
  void PutTerms(const Point& point, Row&& row) const;
  // The minimum of the quadratic function with these slopes; exact if it has no products.
  Point MinimumOf(const std::vector<double>& slopes, Point point) const;

  std::vector<Axis> axes_;
  std::vector<Scale> scales_;  // by axis
  bool products_ = false;
  size_t results_ = 0;
  double explained_ = 0;
  // The best value, relative to the mean of the values, in units of their range.
  double best_ = 0;
  double deviation_ = 0;  // of the leave-one-out errors, in the same units
  std::vector<Term> terms_;
  std::vector<double> factor_;  // Cholesky factor of the slopes' precision, column by column
};

}  // namespace attune::searchers
