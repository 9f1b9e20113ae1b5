#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/log/archive.h"
#include "searchers/model/cube.h"

namespace attune::searchers {

// The normal distribution of an evolution strategy with covariance matrix adaptation (Hansen, "The
// CMA Evolution Strategy: A Tutorial", arXiv:1604.00772; equation numbers below are its):
// mean + step · spread ⊙ y, where y has the covariance.
//
// - Draws come by the Cholesky factor of the covariance in place of its square root, for the step's
//   path as well (Krause, Arbonès and Igel, "CMA-ES with optimal covariance update and storage
//   complexity", NIPS 2016): no eigenvalues, n³/6 operations a generation, all of them in one
//   order.
// - Above `kMostJoint` dimensions the covariance is diagonal, and learned (n + 2)/3 times as fast
//   (Ros and Hansen, "A simple modification in CMA-ES achieving linear time and space complexity",
//   PPSN 2008).
// - Points that were not drawn from it are shortened before anything is learned from them (Hansen,
//   "Injecting external solutions into CMA-ES", arXiv:1110.4181, eq. 4 and 5).
// - Where values come in cells, mean and spread are set right so that neighbouring cells keep a
//   chance (Hamano et al., "CMA-ES with margin", GECCO 2022, §4.2).
class AdaptedNormal {
 public:
  static constexpr size_t kMostJoint = 100;

  struct Sample {
    Point at;
    bool injected = false;  // not drawn from the distribution as it is now
  };

  AdaptedNormal() = default;
  // REQUIRES: a population of at least four, step > 0.
  AdaptedNormal(Point mean, double step, size_t population);

  size_t size() const { return mean_.size(); }
  size_t population() const { return population_; }
  const Point& mean() const { return mean_; }
  double step() const { return step_; }

  // The point of independent standard normal numbers, one a dimension.
  Point At(const Point& normal) const;

  // Standard deviation in a dimension, without the spread of cells.
  double Deviation(size_t dimension) const;

  // Learns from a generation, the best first. False when nothing can be learned any more, since
  // numbers have run out of digits. REQUIRES: a dimension at least, and as many samples as the
  // population.
  bool Learn(const std::vector<Sample>& best_first);

  // In one dimension mean and deviation are again what they were: nothing was learned there.
  void Keep(size_t dimension, const AdaptedNormal& before);

  // Leaves the cells beside that of the mean a probability of `margin` together, half of it each;
  // at an end, one of it to the only neighbour. `cell` is where the mean's begins and ends; 0 and 1
  // are the ends of the dimension.
  void KeepMargin(size_t dimension, std::pair<double, double> cell, double margin);

  // Widths beyond are made this one, by a smaller step.
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
  bool Derive();     // what follows from the rest; false where it makes no sense
  bool Factorise();  // false where the covariance is no longer positive
  Point Whiten(const Point& y) const;

  Point mean_;
  Point spread_;
  double step_ = 0;
  size_t population_ = 0;
  std::vector<double> covariance_;  // lower triangle by rows; above kMostJoint the diagonal
  Point path_;
  Point step_path_;
  double fading_ = 1;            // what is left of the start in the step's path: (1 - c_σ)^(2 g)
  std::vector<double> factor_;   // as covariance_
  std::vector<double> weights_;  // by rank; negative from the middle on
};

}  // namespace attune::searchers
