#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/log/archive.h"
#include "searchers/model/cube.h"

namespace attune::searchers {

// The normal distribution of an evolution strategy with covariance matrix adaptation (Hansen, "The
// CMA Evolution Strategy: A Tutorial", arXiv:1604.00772, whose equation numbers are used below). It
// is the distribution of mean + step · spread ⊙ y, where y has the covariance.
//
// - The Cholesky factor of the covariance replaces its square root, in draws and in the path of the
//   step (Krause, Arbonès and Igel, "CMA-ES with optimal covariance update and storage complexity",
//   NIPS 2016). So no eigenvalues are needed. A generation costs n³/6 operations, always in the
//   same order.
// - Above `kMostJoint` dimensions the covariance is diagonal, and is learned (n + 2)/3 times as
// fast
//   (Ros and Hansen, "A simple modification in CMA-ES achieving linear time and space complexity",
//   PPSN 2008).
// - Points that were not drawn from the distribution are moved closer to the mean before they are
//   used (Hansen, "Injecting external solutions into CMA-ES", arXiv:1110.4181, eq. 4 and 5).
// - For integers and steps, mean and spread are corrected so that the neighbouring cells keep a
//   minimum probability (Hamano et al., "CMA-ES with margin", GECCO 2022, §4.2).
class AdaptedNormal {
 public:
  static constexpr size_t kMostJoint = 100;

  struct Sample {
    Point point;
    bool injected = false;  // not drawn from the current distribution
  };

  AdaptedNormal() = default;
  // REQUIRES: population >= 4, step > 0.
  AdaptedNormal(Point mean, double step, size_t population);

  size_t size() const { return mean_.size(); }
  size_t population() const { return population_; }
  const Point& mean() const { return mean_; }
  double step() const { return step_; }

  // Transforms independent standard normal numbers, one per dimension, to a point.
  Point ToPoint(const Point& normal) const;

  // The standard deviation in a dimension, without the factor `spread`.
  double Deviation(size_t dimension) const;

  // Learns from a generation, the best sample first. Returns false if the numbers have left the
  // range of floating point, so that nothing more can be learned. REQUIRES: at least one dimension,
  // and population() samples.
  bool Learn(const std::vector<Sample>& best_first);

  // Restores the mean and the deviation of one dimension.
  void RestoreDimension(size_t dimension, const AdaptedNormal& before);

  // Ensures that each side of the mean's cell has a probability of at least margin / 2. For the
  // first or the last cell, the only side gets at least `margin`. `cell` is the begin and the end
  // of the mean's cell; the dimension is [0, 1].
  void KeepMargin(size_t dimension, std::pair<double, double> cell, double margin);

  // Reduces the step so that no deviation exceeds this.
  void LimitDeviation(double most);

  template <class A>
  friend void Fields(A& archive, Like<A, AdaptedNormal>& normal) {
    archive(normal.mean_, normal.spread_, normal.step_, normal.population_, normal.covariance_,
            normal.path_, normal.step_path_, normal.fading_);
    if constexpr (A::kReads) {
      if (!archive.ok() || !normal.Derive()) archive.Fail();
    }
  }

 private:
  struct Rates;

  bool joint() const { return size() <= kMostJoint; }
  // Computes the weights and the factor. Returns false if the state is inconsistent.
  bool Derive();
  // Returns false if the covariance is not positive definite.
  bool Factorise();
  // Transforms the steps y of ToPoint back to independent standard normal numbers.
  Point Whiten(const Point& y) const;

  Point mean_;
  Point spread_;
  double step_ = 0;
  size_t population_ = 0;
  std::vector<double> covariance_;  // lower triangle by rows; above kMostJoint, the diagonal
  Point path_;
  Point step_path_;
  double fading_ = 1;            // influence of the start on the step's path: (1 - c_σ)^(2 g)
  std::vector<double> factor_;   // laid out as covariance_
  std::vector<double> weights_;  // by rank; negative in the second half
};

}  // namespace attune::searchers
