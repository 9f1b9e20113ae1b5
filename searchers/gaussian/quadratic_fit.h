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
  static size_t ResultsMax(const std::vector<Axis>& axes);
  // And of those that came to nothing, instead of as many of the best.
  static size_t FailedMax(const std::vector<Axis>& axes) { return ResultsMax(axes) / 3; }

  // Nullopt where there are too few results, they are all alike, or neither fit predicts anything.
  // `failed` is where others came to nothing: it counts as the worst of the results that are taken,
  // or the search would go on behind a border that no result lies behind.
  // REQUIRES: no more than Wanted() and WantedFailed(), a coordinate an axis, a value each of
  // `points`, the least value first.
  static std::optional<QuadraticFit> Make(const std::vector<Axis>& axes,
                                          const std::vector<Point>& points,
                                          const std::vector<double>& values,
                                          const std::vector<Point>& failed = {});

  // The logarithm of the chance that a point is better than the best one.
  double LogImprovementChance(const Point& point) const;

  // Where one of the functions that the results allow is least, drawn by how likely each is
  // (Thompson sampling); with products the minimum that coordinate descent comes to from the point.
  // In coordinates in which the results are all alike it stays at that point.
  Point Draw(RandomStream& random, Point from) const;

  size_t results() const { return results_; }
  // Part of the spread of the results that it predicts: in (0, 1].
  double explained() const { return explained_; }

 private:
  // Coordinates of an axis in units of how far the results spread.
  struct Scale {
    double centre = 0;
    double width = 1;
  };
  // A column of the regression: what it is in units of its deviation over the results.
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
  // Where the quadratic function of these slopes is least: exactly, where it has no products.
  Point Least(const std::vector<double>& slopes, Point point) const;

  std::vector<Axis> axes_;
  std::vector<Scale> scales_;  // by axis
  bool products_ = false;
  size_t results_ = 0;
  double explained_ = 0;
  // In units of how far the values spread, beyond their mean.
  double best_ = 0;
  double deviation_ = 0;  // of a result from what is predicted without it
  std::vector<Term> terms_;
  std::vector<double> factor_;  // of the slopes' precision by Cholesky, column after column
};

}  // namespace attune::searchers
