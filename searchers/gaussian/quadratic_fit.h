#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/base/random.h"
#include "searchers/model/kernel.h"

namespace attune::searchers {

// What the best results say of the points between them: a quadratic function of the coordinates, by
// ridge regression, as in the local model of lq-CMA-ES (Hansen, "A global surrogate assisted
// CMA-ES", GECCO 2019). A list has a number for each value instead. How far it is off is known from
// the results, each predicted by a fit without it.
//
// There is one with a product for each two numbers, and one without, of fewer results; the one that
// predicts the larger part of the spread of its results is taken.
class QuadraticFit {
 public:
  // With more a fit costs more than a proposal may.
  static constexpr size_t kMostTerms = 64;

  // How many of the best results it is of, at most; 0 where there are too many terms.
  static size_t Wanted(const std::vector<Axis>& axes);

  // Nullopt where there are too few results, they are all alike, or neither fit predicts anything.
  // REQUIRES: no more than Wanted(), a coordinate an axis and a value each, the least value first.
  static std::optional<QuadraticFit> Make(const std::vector<Axis>& axes,
                                          const std::vector<Point>& points,
                                          const std::vector<double>& values);

  // The logarithm of the chance that a point is better than the best result.
  double LogBetter(const Point& point) const;

  // Where one of the functions that the results allow is least, drawn by how likely each is
  // (Thompson sampling); with products the minimum that coordinate descent comes to from the point.
  Point Draw(RandomStream& random, Point from) const;

  size_t results() const { return results_; }
  // Part of the spread of the results that it predicts: in (0, 1].
  double explained() const { return explained_; }

 private:
  QuadraticFit() = default;

  static std::optional<QuadraticFit> Make(const std::vector<Axis>& axes,
                                          const std::vector<Point>& points,
                                          const std::vector<double>& values, bool products);

  std::vector<Axis> axes_;
  bool products_ = false;
  size_t results_ = 0;
  double explained_ = 0;
  // In units of how far the values spread, beyond their mean.
  double best_ = 0;
  double deviation_ = 0;  // of a result from what is predicted without it
  // By term: its mean and deviation over the results, and its slope in units of the latter.
  std::vector<double> means_;
  std::vector<double> spreads_;
  std::vector<double> slopes_;
  std::vector<double> factor_;  // of the slopes' precision by Cholesky, column after column
};

}  // namespace attune::searchers
